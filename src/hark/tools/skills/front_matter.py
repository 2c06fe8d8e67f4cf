"""Front matter: the YAML fields at the start of a document."""

import re
from typing import Any, cast

MAX_CHARACTERS = 20_000
MAX_DEPTH = 20
# A description with a colon is common, but not valid YAML.
_UNQUOTED = re.compile(
    r"^([A-Za-z0-9_][\w.-]*[ \t]*):[ \t]+([^\s'\"|>&*!%@`#\[{][^\n]*?:[ \t][^\n]*?)((?<![ \t])[ \t]+#[^\n]*)?$",
    re.MULTILINE,
)


class BadFrontMatter(ValueError):
    """The front matter can't be parsed. The error's text describes the problem."""


def split_document(text: str) -> tuple[dict[str, Any], str]:
    """Return the fields and the body of a document. Scalars stay text as written: a version 1.10 stays "1.10".

    Raises:
        BadFrontMatter: The front matter is missing, too long, not YAML, or has aliases.
    """
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    if lines[0].rstrip() != "---":
        raise BadFrontMatter("it must begin with a line --- and the fields name and description")
    ends = [number for number, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")]
    if not ends:
        raise BadFrontMatter("its front matter needs a closing line ---")
    fields = "\n".join(lines[1 : ends[0]])
    if len(fields) > MAX_CHARACTERS:
        raise BadFrontMatter(f"its front matter is longer than {MAX_CHARACTERS:,} characters")
    return _parse_fields(_UNQUOTED.sub(_quote_value, fields)), "\n".join(lines[ends[0] + 1 :]).strip("\n")


def _quote_value(found: re.Match[str]) -> str:
    value = found[2].replace("'", "''")
    return f"{found[1]}: '{value}'{found[3] or ''}"


def _parse_fields(text: str) -> dict[str, Any]:
    import yaml  # imported only if there is a skill

    try:
        depth = 0
        for event in yaml.parse(text, yaml.BaseLoader):
            if isinstance(event, yaml.AliasEvent):
                raise BadFrontMatter("its fields contain YAML aliases (*name): write out the values")
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:  # the parser needs time in proportion to the square of the depth
                raise BadFrontMatter(f"its fields are nested more than {MAX_DEPTH} levels deep")
        node = yaml.compose(text, yaml.BaseLoader)
        # The base loader creates only text, lists and mappings, whatever tags the YAML has.
        fields: Any = yaml.load(text, yaml.BaseLoader)  # noqa: S506
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 2}: " if error.problem_mark else ""
        raise BadFrontMatter(f"its fields are not valid YAML: {line}{error.problem}") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise BadFrontMatter(f"its fields are not valid YAML: {' '.join(str(error).split())}") from error
    if node is None:
        return {}
    if not isinstance(node, yaml.MappingNode):
        raise BadFrontMatter("its fields are not lines of the form `name: value`")
    names = [key.value for key, _ in node.value]
    if duplicate := next((name for index, name in enumerate(names) if name in names[:index]), None):
        raise BadFrontMatter(f"its field {duplicate} occurs twice")
    return cast("dict[str, Any]", fields)
