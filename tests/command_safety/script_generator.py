"""Generates random bash scripts that are valid. All commands have harmless names."""

import random

NAMES = ("run", "list", "build", "check", "send_file", "echo", "cd", "test")
NESTING_MAX = 3


class ScriptGenerator:
    """Writes scripts from a grammar. Equal seeds give equal scripts."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._depth = 0
        self._document_count = 0

    def write_script(self) -> str:
        """Return a script of a few statements, without a final newline."""
        if self._depth >= NESTING_MAX:
            return self._write_simple()
        self._depth += 1
        statements = [self._write_statement() for _ in range(self._random.randint(1, 3))]
        self._depth -= 1
        return "\n".join(statements)

    def _choose(self, *choices: str) -> str:
        return self._random.choice(choices)

    def _write_statement(self) -> str:
        choice = self._random.randrange(12)
        if choice == 0:
            return self._write_document()
        if choice == 1:
            # Alone on its line: for shfmt, a pipe after the function belongs to its body.
            head = self._choose("f()", "f ()", "function f", "function f()", "f()\n", "my-f ( )")
            return f"{head} {{\n{self.write_script()}\n}}"
        if choice == 2:
            return f"{self._write_command()} & {self._write_command()}"
        commands = [self._write_command() for _ in range(self._random.choice((1, 1, 1, 2, 3)))]
        text = commands[0]
        for command in commands[1:]:
            text += self._choose(" | ", " && ", " || ", "; ", " |& ", " |\n", " &&\n# comment\n") + command
        return self._choose("", "", "", "! ", "time ") + text + self._choose("", "", " # comment (", ";")

    def _write_document(self) -> str:
        self._document_count += 1
        end = f"END{self._document_count}"
        quoted = self._choose(end, f"'{end}'")
        rest = self._choose("", f" | {self._write_simple()}", f" && {self._write_simple()}")
        body = self._choose("text", "$x \\$y", "$(run)", "`list a`", "it's ( [ {", 'a "quote')
        return f"{self._write_simple()} <<{quoted}{rest}\n{body}\n{end}"

    def _write_command(self) -> str:
        choice = self._random.randrange(15)
        if choice < 5 or self._depth >= NESTING_MAX:
            return self._write_simple()
        body = self.write_script
        match choice:
            case 5:
                return f"{{\n{body()}\n}}{self._write_redirect()}"
            case 6:
                return f"( {body()}\n){self._write_redirect()}"
            case 7:
                return f"if {body()}\nthen {body()}\nelif {self._write_simple()}; then {body()}\nelse\n{body()}\nfi"
            case 8:
                return f"{self._choose('while', 'until')} {self._write_simple()}; do\n{body()}\ndone"
            case 9:
                return f"for item in {self._write_word()} {self._write_word()}; do {body()}\ndone"
            case 10:
                return f"for ((i = 0; i < 3; i++)); do\n{body()}\ndone"
            case 11:
                return f"case {self._write_word()} in\n(a | b*) {body()}\n;;\n*) {body()}\nesac"
            case 12:
                return self._write_array()
            case 13:
                return f"[[ -n {self._write_word()} && ( {self._write_word()} == b* ) ]]"
            case _:
                return f"(( x = 1 + $({self._write_simple()}) ))"

    def _write_array(self) -> str:
        items = self._choose(
            "", "", f"{self._write_word()} {self._write_word()}", f"\n{self._write_word()} # comment (\n"
        )
        end = self._choose("", "\n" + self._write_simple())
        return f"{self._choose('', '', 'declare -a ')}names{self._choose('=', '+=')}({items}){end}"

    def _write_simple(self) -> str:
        words = [self._choose(*NAMES), *(self._write_word() for _ in range(self._random.randrange(3)))]
        prefix = self._choose("", "", "", "a=1 ", f"a={self._write_word()} ")
        return prefix + " ".join(words) + self._write_redirect()

    def _write_redirect(self) -> str:
        return self._choose(
            "",
            "",
            "",
            "",
            " >log",
            " 2>&1",
            " &>log",
            " >&2",
            " 3<>log",
            " >|log",
            " </dev/null",
            " <<<text",
            f" >>{self._write_word()}",
        )

    def _write_word(self) -> str:
        if self._depth < NESTING_MAX and self._random.random() < 0.15:
            opener = self._choose("$(", '"$(', "<(", "${x:-$(", 'a"b$(')
            closer = {"$(": ")", '"$(': ')"', "<(": ")", "${x:-$(": ")}", 'a"b$(': ')"'}[opener]
            return f"{opener} {self.write_script()}\n{closer}"  # with a blank, because `$((` starts arithmetic
        return self._choose(
            *(
                "a",
                "--all",
                "src/*.py",
                "'it is'",
                '"$x y"',
                "${x}",
                "${x##*/}",
                "$((1 + 2))",
                "$'a\\'b'",
                "a\\ b",
                "{a,b}",
            ),
            *("`run a`", "a=b", "\\(", "'('", '")"', "a#b", "$#", "${#x}", "${x[1]}", "''", "$((x[1] + (2)))", "\\\nb"),
            *(
                '"${x:-"a b"}"',
                "@(a|b)",
                '$"x"',
                '"${x/\\}/b}"',
                "${x:-\\}}",
                '"a\\`b"',
                "${x//\\//_}",
                "\\'",
                "'\\'",
                '"#"',
            ),
            *("${x:-'}'}", '"$(run ")")"', "${x:-`run b`}", "$(( (1) + $(run) ))", "a[1]", "$[1 + 2]", "${!x}", "$$"),
        )
