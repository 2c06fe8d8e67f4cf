"""Parses a shell command into its simple commands.

Reads bash syntax as bash does, or rejects it. Never overlooks a command that bash would run.
"""

import re

from hark.command_safety.parsing.syntax_tree import (
    Assignment,
    Chain,
    CommandNode,
    CompoundCommand,
    FunctionDefinition,
    HereDocument,
    LiteralText,
    Pipeline,
    Redirect,
    Script,
    ShellSyntaxError,
    SimpleCommand,
    Word,
)
from hark.command_safety.parsing.word_reader import Cursor, WordReader

DEPTH_MAX = 24
_BLANK = re.compile(r"(?:[ \t]|\\\n)+")
_COMMENT = re.compile(r"#[^\n]*")
_RESERVED = re.compile(
    r"(if|then|elif|else|fi|while|until|for|select|do|done|case|esac|function|coproc|time|in|\{|\}|!|\[\[)"
    r"(?=[ \t\n;&|()<>]|\\\n|$)"
)
_REDIRECT = re.compile(r"(?:\d+|\{[A-Za-z_]\w*\})?(<<<|<<-|<<|<>|<&|>>|>&|>\||&>>|&>|<(?!\()|>(?!\())")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(?:\[[^\]\n$`\"']*\])?\+?=", re.ASCII)
# A name with an equals sign is an assignment: `x=()` creates an empty array.
_FUNCTION = re.compile(r"([^\s;&|()<>$`\\'\"=]+)[ \t]*\([ \t]*\)")
_FUNCTION_NAME = re.compile(r"[^\s;&|()<>$`\\'\"]+(?:[ \t]*\([ \t]*\))?")
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_CONDITION_PLAIN = re.compile(r"(?:[ \t\n;&|()]|[<>](?!\())+")


def parse(text: str, depth: int = 0) -> Script:
    """Return the parsed script.

    Raises:
        ShellSyntaxError: The text isn't a valid shell command, or is nested deeper than `DEPTH_MAX`.
    """
    if "\0" in text:
        raise ShellSyntaxError("contains a NUL character")
    parser = _Parser(text, depth)
    return parser.read_script(frozenset())


class _Parser:
    def __init__(self, text: str, depth: int) -> None:
        self._cursor = Cursor(text)
        self._depth = depth
        self._words = WordReader(self._cursor, self._read_substitution, lambda inner: parse(inner, self._depth + 1))
        self._documents: list[tuple[HereDocument, str, bool, bool]] = []

    def read_script(self, closers: frozenset[str]) -> Script:
        """Parse a script up to one of `closers`, which stays unread. If `closers` is empty, parse the whole text.

        Raises:
            ShellSyntaxError: The text ends before a closing word, or is nested too deeply.
        """
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise ShellSyntaxError("nested too deeply")
        chains: list[Chain] = []
        while True:
            self._skip_separators()
            if self._cursor.is_at_end:
                if closers:
                    raise ShellSyntaxError(f"missing {min(closers)}")
                break
            if self._peek_closer() in closers:
                break
            chains.append(self._read_chain())
        self._depth -= 1
        return Script(tuple(chains))

    def read_document(self) -> Word:
        """Parse the whole text as the body of a here-document."""
        return self._words.read_document()

    def _read_nested(self) -> Script:
        script = self.read_script(frozenset({")"}))
        self._cursor.at += 1
        return script

    def _read_substitution(self) -> Script:
        """Parse a nested script. Here-documents of the line around it start after that line, not inside the script."""
        documents, self._documents = self._documents, []
        script = self._read_nested()
        if self._documents:
            raise ShellSyntaxError("a here-document inside a substitution starts after it")
        self._documents = documents
        return script

    def _peek_closer(self) -> str:
        """Return the closing word at the cursor, or "" if there is none."""
        for mark in (")", ";;", ";&"):
            if self._cursor.starts_with(mark):
                return mark
        match = _RESERVED.match(self._cursor.text, self._cursor.at)
        return match[1] if match else ""

    def _skip_blanks(self) -> None:
        while self._cursor.consume(_BLANK) or self._cursor.consume(_COMMENT):
            pass

    def _skip_separators(self) -> None:
        """Skip spaces, tabs, comments, newlines and lone semicolons."""
        cursor = self._cursor
        while True:
            self._skip_blanks()
            if cursor.starts_with("\n"):
                cursor.at += 1
                self._read_documents()
            elif cursor.starts_with(";") and not (cursor.starts_with(";;") or cursor.starts_with(";&")):
                cursor.at += 1
            else:
                return

    def _skip_newlines(self) -> None:
        self._skip_blanks()
        while self._cursor.starts_with("\n"):
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
        is_background = self._cursor.starts_with("&")
        self._cursor.at += 1 if is_background else 0
        return Chain(tuple(pipelines), tuple(operators), is_background)

    def _read_pipeline(self) -> Pipeline:
        self._skip_blanks()
        while (word := self._peek_reserved_word()) in ("!", "time", "coproc") or self._cursor.starts_with("!("):
            self._cursor.at += len(word) or 1
            self._skip_blanks()
            if word == "time":
                self._cursor.consume(re.compile(r"-p\b|--(?=\s)"))
                self._skip_blanks()
        commands = [self._read_command()]
        while True:
            self._skip_blanks()
            if not self._cursor.starts_with("|") or self._cursor.starts_with("||"):
                return Pipeline(tuple(commands))
            self._cursor.at += 2 if self._cursor.starts_with("|&") else 1
            self._skip_newlines()
            commands.append(self._read_command())

    def _peek_reserved_word(self) -> str:
        match = _RESERVED.match(self._cursor.text, self._cursor.at)
        return match[1] if match else ""

    def _read_command(self) -> CommandNode:
        cursor = self._cursor
        word = self._peek_reserved_word()
        if cursor.starts_with("((") and (arithmetic := self._words.try_read_arithmetic(2)):
            return self._read_redirects(CompoundCommand("arithmetic", words=((arithmetic,),)))
        if cursor.starts_with("("):
            cursor.at += 1
            return self._read_redirects(CompoundCommand("subshell", (self._read_nested(),)))
        match word:
            case "{":
                return self._read_redirects(CompoundCommand("group", (self._read_block("{", "}"),)))
            case "if":
                return self._read_redirects(self._read_if())
            case "while" | "until":
                blocks = (self._read_block(word, "do"), self._read_block("", "done"))
                return self._read_redirects(CompoundCommand(word, blocks))
            case "for" | "select":
                return self._read_redirects(self._read_for(word))
            case "case":
                return self._read_redirects(self._read_case())
            case "[[":
                return self._read_redirects(self._read_condition())
            case "function":
                cursor.at += len(word)
                self._skip_blanks()
                name = cursor.consume(_FUNCTION_NAME)
                return self._read_function(name.rstrip("() \t"))
            case "then" | "elif" | "else" | "fi" | "do" | "done" | "esac" | "}":
                raise ShellSyntaxError(f"unexpected {word}")
            case _:
                function = _FUNCTION.match(cursor.text, cursor.at)
                if function:
                    cursor.at = function.end()
                    return self._read_function(function[1])
                return self._read_simple()

    def _read_redirects(self, command: CompoundCommand) -> CompoundCommand:
        redirects: list[Redirect] = []
        self._skip_blanks()
        while redirect := self._read_redirect():
            redirects.append(redirect)
            self._skip_blanks()
        if not redirects:
            return command
        return CompoundCommand(command.kind, command.blocks, command.name, command.words, tuple(redirects))

    def _expect(self, word: str) -> None:
        self._skip_separators()
        if not self._cursor.starts_with(word):
            raise ShellSyntaxError(f"missing {word}")
        self._cursor.at += len(word)

    def _read_block(self, opener: str, closer: str) -> Script:
        if opener:
            self._expect(opener)
        script = self.read_script(frozenset({closer}))
        self._cursor.at += len(closer)
        return script

    def _read_if(self) -> CompoundCommand:
        self._expect("if")
        blocks: list[Script] = []
        while True:
            blocks.append(self._read_block("", "then"))
            blocks.append(self.read_script(frozenset({"elif", "else", "fi"})))
            closer = self._peek_closer()
            self._cursor.at += len(closer)
            if closer == "else":
                blocks.append(self._read_block("", "fi"))
            if closer != "elif":
                return CompoundCommand("if", tuple(blocks))

    def _read_for(self, opener: str) -> CompoundCommand:
        cursor = self._cursor
        cursor.at += len(opener)
        self._skip_blanks()
        name = ""
        words: list[Word] = []
        if cursor.starts_with("(("):
            arithmetic = self._words.try_read_arithmetic(2)
            if arithmetic is None:
                raise ShellSyntaxError("for (( is not closed")
            words.append((arithmetic,))
        else:
            name = cursor.consume(_NAME)
            self._skip_newlines()
            if self._peek_reserved_word() == "in":
                cursor.at += 2
                words.extend(self._read_words())
            elif not name:
                raise ShellSyntaxError("for has no variable name")
        self._skip_separators()
        opener, closer = ("{", "}") if cursor.starts_with("{") else ("do", "done")
        return CompoundCommand("for", (self._read_block(opener, closer),), name, tuple(words))

    def _read_words(self) -> list[Word]:
        words: list[Word] = []
        while True:
            self._skip_blanks()
            word = self._words.read_word()
            if not word:
                return words
            words.append(word)

    def _read_case(self) -> CompoundCommand:
        cursor = self._cursor
        cursor.at += len("case")
        self._skip_blanks()
        words = [self._words.read_word()]
        self._skip_newlines()
        self._expect("in")
        blocks: list[Script] = []
        while True:
            self._skip_separators()
            if self._peek_reserved_word() == "esac":
                cursor.at += len("esac")
                return CompoundCommand("case", tuple(blocks), words=tuple(words))
            if cursor.starts_with("("):
                cursor.at += 1
            words.extend(self._read_patterns())
            blocks.append(self.read_script(frozenset({";;", ";&", "esac"})))
            if cursor.starts_with(";"):
                cursor.at += 3 if cursor.starts_with(";;&") else 2

    def _read_patterns(self) -> list[Word]:
        patterns: list[Word] = []
        while True:
            patterns.extend(self._read_words())
            if self._cursor.starts_with("|"):
                self._cursor.at += 1
            elif self._cursor.starts_with(")"):
                self._cursor.at += 1
                return patterns
            else:
                raise ShellSyntaxError("unterminated pattern in case")

    def _read_condition(self) -> CompoundCommand:
        cursor = self._cursor
        cursor.at += 2
        words: list[Word] = [(LiteralText("[["),)]
        while True:
            cursor.consume(_CONDITION_PLAIN)
            if cursor.is_at_end:
                raise ShellSyntaxError("missing ]]")
            word = self._words.read_word()
            if not word:
                cursor.consume(_CONDITION_PLAIN)
            elif word == (LiteralText("]]"),):
                return CompoundCommand("condition", words=tuple(words))
            else:
                words.append(word)

    def _read_function(self, name: str) -> FunctionDefinition:
        self._skip_newlines()
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise ShellSyntaxError("nested too deeply")
        body = self._read_command()
        if not isinstance(body, CompoundCommand):
            raise ShellSyntaxError(f"the body of the function {name} is not a compound command")
        self._depth -= 1
        return FunctionDefinition(name, body)

    def _read_simple(self) -> SimpleCommand:
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
                if self._cursor.starts_with("(") and (name := _assigned_name(word)):
                    assignments.append(Assignment(name, items=self._read_array_items()))
            else:
                break
        if self._cursor.at == start or self._cursor.starts_with("("):
            raise ShellSyntaxError(f"unexpected {self._cursor.peek() or 'end'}")
        return SimpleCommand(tuple(words), tuple(assignments), tuple(redirects))

    def _read_assignment(self) -> Assignment | None:
        match = _ASSIGNMENT.match(self._cursor.text, self._cursor.at)
        if match is None:
            return None
        self._cursor.at = match.end()
        if self._cursor.starts_with("("):
            return Assignment(match[1], items=self._read_array_items())
        return Assignment(match[1], self._words.read_word(), is_append=match.group().endswith("+="))

    def _read_array_items(self) -> tuple[Word, ...]:
        self._cursor.at += 1
        items: list[Word] = []
        while True:
            self._skip_newlines()
            if self._cursor.starts_with(")"):
                self._cursor.at += 1
                return tuple(items)
            word = self._words.read_word()
            if not word:
                raise ShellSyntaxError("unterminated array")
            items.append(word)

    def _read_redirect(self) -> Redirect | None:
        match = _REDIRECT.match(self._cursor.text, self._cursor.at)
        if match is None:
            return None
        self._cursor.at = match.end()
        self._skip_blanks()
        target = self._words.read_word()
        if not target:
            raise ShellSyntaxError(f"no target after {match[1]}")
        if match[1] not in ("<<", "<<-"):
            return Redirect(match[1], target)
        document = HereDocument()
        end, is_quoted = _document_delimiter(target)
        self._documents.append((document, end, is_quoted, match[1] == "<<-"))
        return Redirect("<<", target, document)

    def _read_documents(self) -> None:
        """Read the bodies of the here-documents that were declared in the previous line."""
        documents, self._documents = self._documents, []
        for document, end, is_quoted, is_indented in documents:
            lines: list[str] = []
            while not self._cursor.is_at_end:
                line, self._cursor.at = _read_line(self._cursor.text, self._cursor.at)
                line = line.lstrip("\t") if is_indented else line
                if line == end:
                    break
                lines.append(line + "\n")
            body = "".join(lines)
            document.body = (
                (LiteralText(body, is_quoted=True),) if is_quoted else _Parser(body, self._depth).read_document()
            )


def _read_line(text: str, at: int) -> tuple[str, int]:
    end = text.find("\n", at)
    return (text[at:], len(text)) if end < 0 else (text[at:end], end + 1)


def _document_delimiter(target: Word) -> tuple[str, bool]:
    texts = [part for part in target if isinstance(part, LiteralText)]
    if len(texts) != len(target):
        raise ShellSyntaxError("the end marker of a here-document can't be determined")
    return "".join(part.text for part in texts), any(part.is_quoted for part in texts)


def _assigned_name(word: Word) -> str:
    if len(word) != 1 or not isinstance(word[0], LiteralText) or word[0].is_quoted:
        return ""
    match = _ASSIGNMENT.fullmatch(word[0].text)
    return match[1] if match else ""
