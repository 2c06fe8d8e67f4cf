# Constructs that are easy to misread. Every command has a harmless name and is found by shfmt and by our parser.
files=()
after_empty_array
declare -a list=() other=(one "$(in_declared_array)")
after_declare
local_array[0]=x
after_index
names=(
  first "$(in_array)" # a comment (with a parenthesis
  'second )'
)
after_array
x=() y=$(in_assignment) z=()
function with_keyword { in_keyword; }
function with_both() { in_both; }
plain() { in_plain; }
spaced ()
{
  in_spaced
}
subshell_body() ( in_subshell_body )
condition_body() [[ -n $(in_condition_body) ]]
loop_body() for item in one two; do in_loop_body; done
redirected_body() { in_redirected_body; } >"$(in_redirect)"
defined() { in_defined; } && after_defined || or_defined
cat_document <<END1 | after_document
$(in_document) `in_backticks`
\$(not_a_command)
END1
quoted_document <<'END2' && after_quoted_document
$(not_a_command) `not_a_command`
END2
two_documents <<END3 <<-END4
$(in_first)
END3
	$(in_second)
	END4
after_documents
echo "${x:-$(in_default)}" ${y#"$(in_operand)"} ${z[$(in_index)]}
echo $(( $(in_arithmetic) + 1 )) $[ $(in_old_arithmetic) ]
(( x = $(in_arithmetic_command) ))
( (first_of_two) ; second_of_two)
for ((i = 0; i < $(in_for_header); i++)); do in_for; done
for word in one "$(in_for_words)"; do in_for_in; done
select item in one; do in_select; done
case $(in_case_word) in
  (one | "two") in_case_one ;;
  three) in_case_three ;& # falls through
  @(a|b)) in_case_glob ;;&
  *) in_case_default
esac
case x in esac
after_case
if in_if; then in_then; elif in_elif; then in_elif_then; else in_else; fi >log 2>&1
while in_while; do in_body; done <<<"$(in_here_string)"
until in_until
do
  in_until_body
done
[[ $(in_test) == a* && ( -f b || $c =~ ^(x|y)$ ) ]] && after_test
! negated
time -p timed
{ in_group; } 2>/dev/null &
( in_subshell & )
compare_files <(in_first_process) >(in_second_process)
escaped\ name after\
_continuation
'quoted name' "double $(in_double)"
$'ansi\tname'
piped |& to_both | third
first && second || third; fourth & fifth
#after_comment
word#not_comment
echo a{b,c}d {1..3} "$(in_braces)"
set -- ; after_set
>only_redirect
2>&1 after_redirect
a=1 b=2 with_environment
echo "a 'b' \"c\" \`d\` $(in_quotes "$(nested "$(deeper)")")"
[[ -e <(in_test_process) && a < b ]]
outer_document <<OUTER "$(
  in_line_of_document
  OUTER_is_a_command
)"
text of the document
OUTER
after_outer_document
