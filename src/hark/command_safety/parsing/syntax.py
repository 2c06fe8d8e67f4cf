"""Parsing a shell command into the simple commands that it is made of.

It reads bash, tolerantly: what bash accepts is read as bash reads it, or refused, never read as less than it is.
"""

import re

from hark.command_safety.parsing.quoting import Cursor, WordReader
from hark.command_safety.parsing.words import (
    Assignment,
    Chain,
    Command,
    Compound,
    Function,
    HereDocument,
    LiteralText,
    Pipeline,
    Redirect,
    Script,
    ShellSyntaxError,
    Simple,
    Word,
)

DEPTH_MAX = 24
_BLANK = re.compile(r"(?:[ \t]|\\\n)+")
_COMMENT = re.compile(r"#[^\n]*")
_RESERVED = re.compile(
    r"(if|then|elif|else|fi|while|until|for|select|do|done|case|esac|function|coproc|time|in|\{|\}|!|\[\[)"
    r"(?=[ \t\n;&|()<>]|\\\n|$)"
)
_REDIRECT = re.compile(r"(?:\d+|\{[A-Za-z_]\w*\})?(<<<|<<-|<<|<>|<&|>>|>&|>\||&>>|&>|<(?!\()|>(?!\())")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(?:\[[^\]\n$`\"']*\])?\+?=", re.ASCII)
_FUNCTION = re.compile(r"([^\s;&|()<>$`\\'\"]+)[ \t]*\([ \t]*\)")
_FUNCTION_NAME = re.compile(r"[^\s;&|()<>$`\\'\"]+(?:[ \t]*\([ \t]*\))?")
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_CONDITION_PLAIN = re.compile(r"[ \t\n;&|()<>]+")


def parse(text: str, depth: int = 0) -> Script:
    """Return what a shell would run.

    Raises:
        ShellSyntaxError: It is no shell command, or nested deeper than `DEPTH_MAX`.
    """
    if "\0" in text:
        raise ShellSyntaxError("it holds a NUL")
    parser = _Parser(text, depth)
    return parser.read_script(frozenset())


class _Parser:
    def __init__(self, text: str, depth: int) -> None:
        self._cursor = Cursor(text)
        self._depth = depth
        self._words = WordReader(self._cursor, self._read_nested, lambda inner: parse(inner, self._depth + 1))
        self._documents: list[tuple[HereDocument, str, bool, bool]] = []

    def read_script(self, closers: frozenset[str]) -> Script:
        """Read up to a closing word, which stays unread. At the end of the text without any of `closers`: refuse."""
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise ShellSyntaxError("it is nested too deeply")
        chains: list[Chain] = []
        while True:
            self._skip_separators()
            if self._cursor.is_at_end:
                if closers:
                    raise ShellSyntaxError(f"a {min(closers)} is missing")
                break
            if self._closer() in closers:
                break
            chains.append(self._read_chain())
        self._depth -= 1
        return Script(tuple(chains))

    def read_document(self) -> Word:
        """Read all of the text as the body of a here-document."""
        return self._words.read_document()

    def _read_nested(self) -> Script:
        script = self.read_script(frozenset({")"}))
        self._cursor.at += 1
        return script

    def _closer(self) -> str:
        """Return the closing word that comes next, "" for none."""
        for mark in (")", ";;", ";&"):
            if self._cursor.sees(mark):
                return mark
        match = _RESERVED.match(self._cursor.text, self._cursor.at)
        return match[1] if match else ""

    def _skip_blanks(self) -> None:
        while self._cursor.take(_BLANK) or self._cursor.take(_COMMENT):
            pass

    def _skip_separators(self) -> None:
        """Skip blanks, comments, newlines and lone semicolons."""
        cursor = self._cursor
        while True:
            self._skip_blanks()
            if cursor.sees("\n"):
                cursor.at += 1
                self._read_documents()
            elif cursor.sees(";") and not (cursor.sees(";;") or cursor.sees(";&")):
                cursor.at += 1
            else:
                return

    def _skip_newlines(self) -> None:
        self._skip_blanks()
        while self._cursor.sees("\n"):
            self._cursor.at += 1
            self._read_documents()
            self._skip_blanks()

    def _read_chain(self) -> Chain:
        pipelines = [self._read_pipeline()]
        operators: list[str] = []
        while True:
            self._skip_blanks()
            operator = self._cursor.text[self._cursor.at : self._cursor.at + 2]
            if operator not in ("&&", "||"):
                break
            self._cursor.at += 2
            self._skip_newlines()
            operators.append(operator)
            pipelines.append(self._read_pipeline())
        is_background = self._cursor.sees("&")
        self._cursor.at += 1 if is_background else 0
        return Chain(tuple(pipelines), tuple(operators), is_background)

    def _read_pipeline(self) -> Pipeline:
        self._skip_blanks()
        while (word := self._reserved()) in ("!", "time", "coproc") or self._cursor.sees("!("):
            self._cursor.at += len(word) or 1
            self._skip_blanks()
            if word == "time":
                self._cursor.take(re.compile(r"-p\b|--(?=\s)"))
                self._skip_blanks()
        commands = [self._read_command()]
        while True:
            self._skip_blanks()
            if not self._cursor.sees("|") or self._cursor.sees("||"):
                return Pipeline(tuple(commands))
            self._cursor.at += 2 if self._cursor.sees("|&") else 1
            self._skip_newlines()
            commands.append(self._read_command())

    def _reserved(self) -> str:
        match = _RESERVED.match(self._cursor.text, self._cursor.at)
        return match[1] if match else ""

    def _read_command(self) -> Command:
        cursor = self._cursor
        word = self._reserved()
        if cursor.sees("((") and (arithmetic := self._words.try_arithmetic(2)):
            return self._redirected(Compound("arithmetic", words=((arithmetic,),)))
        if cursor.sees("("):
            cursor.at += 1
            return self._redirected(Compound("subshell", (self._read_nested(),)))
        match word:
            case "{":
                return self._redirected(Compound("group", (self._read_block("{", "}"),)))
            case "if":
                return self._redirected(self._read_if())
            case "while" | "until":
                blocks = (self._read_block(word, "do"), self._read_block("", "done"))
                return self._redirected(Compound(word, blocks))
            case "for" | "select":
                return self._redirected(self._read_for(word))
            case "case":
                return self._redirected(self._read_case())
            case "[[":
                return self._redirected(self._read_condition())
            case "function":
                cursor.at += len(word)
                self._skip_blanks()
                name = cursor.take(_FUNCTION_NAME)
                return self._read_function(name.rstrip("() \t"))
            case "then" | "elif" | "else" | "fi" | "do" | "done" | "esac" | "}":
                raise ShellSyntaxError(f"an unexpected {word}")
            case _:
                function = _FUNCTION.match(cursor.text, cursor.at)
                if function:
                    cursor.at = function.end()
                    return self._read_function(function[1])
                return self._read_simple()

    def _redirected(self, command: Compound) -> Compound:
        redirects: list[Redirect] = []
        self._skip_blanks()
        while redirect := self._read_redirect():
            redirects.append(redirect)
            self._skip_blanks()
        if not redirects:
            return command
        return Compound(command.kind, command.blocks, command.name, command.words, tuple(redirects))

    def _expect(self, word: str) -> None:
        self._skip_separators()
        if not self._cursor.sees(word):
            raise ShellSyntaxError(f"a {word} is missing")
        self._cursor.at += len(word)

    def _read_block(self, opener: str, closer: str) -> Script:
        if opener:
            self._expect(opener)
        script = self.read_script(frozenset({closer}))
        self._cursor.at += len(closer)
        return script

    def _read_if(self) -> Compound:
        self._expect("if")
        blocks: list[Script] = []
        while True:
            blocks.append(self._read_block("", "then"))
            blocks.append(self.read_script(frozenset({"elif", "else", "fi"})))
            closer = self._closer()
            self._cursor.at += len(closer)
            if closer == "else":
                blocks.append(self._read_block("", "fi"))
            if closer != "elif":
                return Compound("if", tuple(blocks))

    def _read_for(self, opener: str) -> Compound:
        cursor = self._cursor
        cursor.at += len(opener)
        self._skip_blanks()
        name = ""
        words: list[Word] = []
        if cursor.sees("(("):
            arithmetic = self._words.try_arithmetic(2)
            if arithmetic is None:
                raise ShellSyntaxError("a for (( without its end")
            words.append((arithmetic,))
        else:
            name = cursor.take(_NAME)
            self._skip_newlines()
            if self._reserved() == "in":
                cursor.at += 2
                words.extend(self._read_words())
            elif not name:
                raise ShellSyntaxError("a for without a name")
        self._skip_separators()
        opener, closer = ("{", "}") if cursor.sees("{") else ("do", "done")
        return Compound("for", (self._read_block(opener, closer),), name, tuple(words))

    def _read_words(self) -> list[Word]:
        words: list[Word] = []
        while True:
            self._skip_blanks()
            word = self._words.read_word()
            if not word:
                return words
            words.append(word)

    def _read_case(self) -> Compound:
        cursor = self._cursor
        cursor.at += len("case")
        self._skip_blanks()
        words = [self._words.read_word()]
        self._skip_newlines()
        self._expect("in")
        blocks: list[Script] = []
        while True:
            self._skip_separators()
            if self._reserved() == "esac":
                cursor.at += len("esac")
                return Compound("case", tuple(blocks), words=tuple(words))
            if cursor.sees("("):
                cursor.at += 1
            words.extend(self._read_patterns())
            blocks.append(self.read_script(frozenset({";;", ";&", "esac"})))
            if cursor.sees(";"):
                cursor.at += 3 if cursor.sees(";;&") else 2

    def _read_patterns(self) -> list[Word]:
        patterns: list[Word] = []
        while True:
            patterns.extend(self._read_words())
            if self._cursor.sees("|"):
                self._cursor.at += 1
            elif self._cursor.sees(")"):
                self._cursor.at += 1
                return patterns
            else:
                raise ShellSyntaxError("a case whose pattern doesn't end")

    def _read_condition(self) -> Compound:
        cursor = self._cursor
        cursor.at += 2
        words: list[Word] = [(LiteralText("[["),)]
        while True:
            cursor.take(_CONDITION_PLAIN)
            if cursor.is_at_end:
                raise ShellSyntaxError("a ]] is missing")
            word = self._words.read_word()
            if not word:
                cursor.take(_CONDITION_PLAIN)
            elif word == (LiteralText("]]"),):
                return Compound("condition", words=tuple(words))
            else:
                words.append(word)

    def _read_function(self, name: str) -> Function:
        self._skip_newlines()
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise ShellSyntaxError("it is nested too deeply")
        body = self._read_command()
        self._depth -= 1
        return Function(name, body)

    def _read_simple(self) -> Simple:
        words: list[Word] = []
        assignments: list[Assignment] = []
        redirects: list[Redirect] = []
        start = self._cursor.at
        while True:
            self._skip_blanks()
            redirect = self._read_redirect()
            if redirect:
                redirects.append(redirect)
            elif not words and (assignment := self._read_assignment()):
                assignments.append(assignment)
            elif word := self._words.read_word(is_argument=bool(words)):
                words.append(word)
                if self._cursor.sees("(") and (name := _assigned_name(word)):
                    assignments.append(Assignment(name, items=self._read_items()))
            else:
                break
        if self._cursor.at == start or self._cursor.sees("("):
            raise ShellSyntaxError(f"an unexpected {self._cursor.peek() or 'end'}")
        return Simple(tuple(words), tuple(assignments), tuple(redirects))

    def _read_assignment(self) -> Assignment | None:
        match = _ASSIGNMENT.match(self._cursor.text, self._cursor.at)
        if match is None:
            return None
        self._cursor.at = match.end()
        if self._cursor.sees("("):
            return Assignment(match[1], items=self._read_items())
        return Assignment(match[1], self._words.read_word(), is_added=match.group().endswith("+="))

    def _read_items(self) -> tuple[Word, ...]:
        self._cursor.at += 1
        items: list[Word] = []
        while True:
            self._skip_newlines()
            if self._cursor.sees(")"):
                self._cursor.at += 1
                return tuple(items)
            word = self._words.read_word()
            if not word:
                raise ShellSyntaxError("an array that doesn't end")
            items.append(word)

    def _read_redirect(self) -> Redirect | None:
        match = _REDIRECT.match(self._cursor.text, self._cursor.at)
        if match is None:
            return None
        self._cursor.at = match.end()
        self._skip_blanks()
        target = self._words.read_word()
        if not target:
            raise ShellSyntaxError(f"nothing behind a {match[1]}")
        if match[1] not in ("<<", "<<-"):
            return Redirect(match[1], target)
        document = HereDocument()
        end, is_quoted = _delimiter(target)
        self._documents.append((document, end, is_quoted, match[1] == "<<-"))
        return Redirect("<<", target, document)

    def _read_documents(self) -> None:
        """Read the here-documents that were announced in the line which just ended."""
        documents, self._documents = self._documents, []
        for document, end, is_quoted, is_indented in documents:
            lines: list[str] = []
            while not self._cursor.is_at_end:
                line, self._cursor.at = _line(self._cursor.text, self._cursor.at)
                line = line.lstrip("\t") if is_indented else line
                if line == end:
                    break
                lines.append(line + "\n")
            body = "".join(lines)
            document.body = (
                (LiteralText(body, is_quoted=True),) if is_quoted else _Parser(body, self._depth).read_document()
            )


def _line(text: str, at: int) -> tuple[str, int]:
    end = text.find("\n", at)
    return (text[at:], len(text)) if end < 0 else (text[at:end], end + 1)


def _delimiter(target: Word) -> tuple[str, bool]:
    texts = [part for part in target if isinstance(part, LiteralText)]
    if len(texts) != len(target):
        raise ShellSyntaxError("a here-document whose end can't be told")
    return "".join(part.text for part in texts), any(part.is_quoted for part in texts)


def _assigned_name(word: Word) -> str:
    if len(word) != 1 or not isinstance(word[0], LiteralText) or word[0].is_quoted:
        return ""
    match = _ASSIGNMENT.fullmatch(word[0].text)
    return match[1] if match else ""
