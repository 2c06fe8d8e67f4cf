"""`python -m tests.prose [PATH...]` prints every sentence that breaks a rule of `docs/style.md`."""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.prose.rules import find_problems, find_subject_problems, sentences
from tests.prose.sources import Text, commit_subjects, first_version, read_texts

ALLOWED = Path(__file__).parent / "allowed.txt"


def main(paths: Sequence[str]) -> int:
    """Print the number of texts checked, then each problem. Return 1 if there is a problem."""
    texts = [text for text in read_texts() if not paths or text.path.startswith(tuple(paths))]
    allowed = [line for line in ALLOWED.read_text().splitlines() if line and not line.startswith("#")]
    problems = list(check(texts, allowed))
    if not paths:
        problems += [*check_allow_list(texts, allowed), *check_commits(commit_subjects())]
    counts = Counter(text.kind for text in texts)
    print("prose:", ", ".join(f"{count:,} {kind}s" for kind, count in sorted(counts.items())), end="")
    print(f"; {len(allowed)} sentences allowed; {len(problems)} problems")
    for problem in problems:
        print(f"  {problem}")
    return 1 if problems else 0


def check(texts: Sequence[Text], allowed: Sequence[str]) -> Iterator[str]:
    """Yield a problem for each sentence that breaks a rule and is not on the allow-list."""
    known = frozenset(allowed)
    for text in texts:
        for sentence in sentences(text.text):
            if f"{text.path}: {sentence}" not in known:
                for problem in find_problems(sentence):
                    yield f"{text.path}:{text.line}: {text.kind}: {problem}\n      {text.path}: {sentence}"


def check_allow_list(texts: Sequence[Text], allowed: Sequence[str]) -> Iterator[str]:
    """Yield a problem for each allow-list entry that is new or no longer needed. The list may only shrink."""
    broken = {
        f"{text.path}: {sentence}"
        for text in texts
        for sentence in sentences(text.text)
        if any(find_problems(sentence))
    }
    original = first_version(ALLOWED)
    for entry in allowed:
        if entry not in broken:
            yield f"{ALLOWED.name}: remove this entry, no such problem exists: {entry}"
        if original is not None and entry not in original:
            yield f"{ALLOWED.name}: rewrite the sentence, the list takes no new entries: {entry}"


def check_commits(subjects: Sequence[str]) -> Iterator[str]:
    """Yield the problems found in commit subjects."""
    for subject in subjects:
        for problem in find_subject_problems(subject):
            yield f"commit {subject!r}: {problem}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
