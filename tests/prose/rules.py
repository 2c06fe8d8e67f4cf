"""The rules of `docs/style.md` that a pattern can check."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from re import Pattern

MAX_SENTENCE_WORDS = 35
MAX_SUBJECT_LENGTH = 72


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern that good sentences don't contain, and advice on what to write instead."""

    name: str
    pattern: Pattern[str]
    advice: str
    is_allowed_in_questions: bool = False


def _rule(name: str, pattern: str, advice: str, *, is_allowed_in_questions: bool = False) -> Rule:
    return Rule(name, re.compile(pattern, re.IGNORECASE), advice, is_allowed_in_questions)


_BEFORE_NOUN_CLAUSE = (
    r"(?:^|[.;:,(]\s*|\b(?:of|to|by|for|from|with|and|or|is|are|in|on|at|than|knows?|decides?|see)\s+)"
)

_IS_NO = (
    r"(?<!there )(?<!here )\b(?:is|are|was|were) (?:no(?! (?:longer|more|less|fewer|later|earlier)\b)|(?-i:none))\b"
)

RULES = (
    _rule("noun clause", r"\bwhat\b(?!\s+(?:to|happened|happens)\b)", "name the thing", is_allowed_in_questions=True),
    _rule("noun clause", _BEFORE_NOUN_CLAUSE + r"whom?\b", "name the user or process", is_allowed_in_questions=True),
    _rule("noun clause", r"\bwhoever\b|\ball that\b", "name the thing"),
    _rule("tell", r"\b(?:tells?|told|telling)\b", "write publish, notify, report, log or return"),
    _rule("hear", r"\b(?:hears?|hearing)\b|(?<!seen or )\bheard\b", "write receive or transcribe"),
    _rule("stand", r"\b(?:stands?|stood)\b(?!\s+for\b|-)", "write is, appears or remains"),
    _rule("anew", r"\banew\b", "write again"),
    _rule("own", r"\bof (?:its|their|our|one's|his|her|my|your) own(?! \w+)|\bof ours\b", "write separate, own or our"),
    _rule("go on", r"\b(?:go|goes|going|went|gone) on\b", "write continue, resume or happen"),
    _rule("is no", _IS_NO, "write isn't a ..."),
    _rule("nobody", r"\b(?:nobody|somebody|everybody|anybody)\b", "name the user, caller or subscriber"),
    _rule("person", r"\bpersons?\b", "write user"),
    _rule("mend", r"\b(?:mends?|mended|mending)\b", "write fix or repair"),
    _rule("let go", r"\b(?:let|lets|letting) go\b|\b(?:give|gives|gave|given|giving) up\b", "write release or abandon"),
    _rule("as far as", r"\bas far as\b", "write if, where or the known"),
    _rule("by itself", r"\bby (?:itself|themselves)\b", "write automatically or alone"),
)  # fmt: skip

_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')*_]*\s+|\n\s*\n|\n\s*[-*|#]\s|\s\|\s")
_WORD = re.compile(r"[A-Za-z][\w'’-]*")
_NOT_IMPERATIVE = frozenset({
    "a", "an", "the", "no", "one", "what", "who", "nobody", "every", "each", "all", "some", "it", "its", "this",
    "that", "these", "and", "of", "in", "on", "at", "for", "with", "when", "if", "more", "new", "now", "not",
    "nothing", "there", "two", "three", "we", "you",
})  # fmt: skip
_PARTICIPLE = re.compile(r"(?:[^e]ed|ing|[^s]s)$")
_VERBS_WITH_SUCH_ENDINGS = frozenset({
    "embed", "shed", "bring", "ring", "string", "ping", "focus", "bias", "canvas", "alias", "discus",
})  # fmt: skip


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text, each on one line."""
    for sentence in _SENTENCE_END.split(text):
        if stripped := " ".join(sentence.split()):
            yield stripped


def find_problems(sentence: str) -> Iterator[str]:
    """Yield each rule that a sentence breaks, with advice."""
    for rule in RULES:
        if rule.is_allowed_in_questions and "?" in sentence:
            continue
        if match := rule.pattern.search(sentence):
            yield f"{rule.name} ({match[0].strip()}): {rule.advice}"
    if (count := len(_WORD.findall(sentence))) > MAX_SENTENCE_WORDS:
        yield f"{count} words in a sentence: write at most {MAX_SENTENCE_WORDS}"


def find_subject_problems(subject: str) -> Iterator[str]:
    """Yield the reasons why a commit subject is not a short imperative sentence."""
    if len(subject) > MAX_SUBJECT_LENGTH:
        yield f"{len(subject)} characters: write at most {MAX_SUBJECT_LENGTH}"
    if subject.endswith("."):
        yield "it ends with a period"
    words = _WORD.findall(subject)
    if not words or not words[0][0].isupper():
        yield "it does not start with a capitalised verb"
        return
    verb = words[0].lower()
    if verb in _NOT_IMPERATIVE or (_PARTICIPLE.search(verb) and verb not in _VERBS_WITH_SUCH_ENDINGS):
        yield f"it starts with {words[0]!r}: start with a verb in the imperative"
