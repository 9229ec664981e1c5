"""SQL text → expression. The grammar is Spark 4's, precedence included; `tests/lang` compares the two.

A recursive descent: one method a rule, each returns the value it read. Every node's span runs from the first to the
last token of its text, parentheses around it left out, so that the text of any part can be handed to Spark as it was
written.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from typing import TypeVar

import pyarrow as pa

from cepheid.errors import PatternError, Problem
from cepheid.lang import literals
from cepheid.lang.expression import Call, Expression, Literal, Name, Span
from cepheid.lang.refused import why_refused
from cepheid.lang.tokens import Kind, Token, tokenize
from cepheid.lang.type_names import read_type

_T = TypeVar("_T")

MAX_DEPTH = 50
"""Parentheses within parentheses; each costs ten of Python's frames."""

_RESERVED_WORDS = """AND OR NOT IN IS LIKE ILIKE RLIKE REGEXP BETWEEN CASE WHEN THEN ELSE END DIV SELECT FROM DISTINCT
    AS NULL TRUE FALSE ESCAPE OVER"""
_RESERVED = frozenset(_RESERVED_WORDS.split())
_COMPARISONS = {s: s for s in ("=", "<=>", "!=", "<", "<=", ">", ">=")} | {"==": "=", "<>": "!="}
_LEVELS: tuple[dict[str, str], ...] = (
    _COMPARISONS,
    {"|": "|"},
    {"^": "^"},
    {"&": "&"},
    {"<<": "<<", ">>": ">>"},
    {"+": "+", "-": "-", "||": "concat"},
    {"*": "*", "/": "/", "%": "%", "DIV": "div"},
)
"""Binary operators, those that bind least first."""
_PATTERNS = ("LIKE", "ILIKE", "RLIKE", "REGEXP")
_UNIT_FUNCTIONS = frozenset(
    {"timestampdiff", "timestampadd", "datediff", "date_diff", "dateadd", "date_add", "timediff"}
)
_UNITS_WORDS = """YEAR QUARTER MONTH WEEK DAY DAYOFYEAR HOUR MINUTE SECOND MILLISECOND MICROSECOND"""
_UNITS = frozenset(_UNITS_WORDS.split())


def parse_expression(text: str) -> Expression:
    """The expression that the text is; PatternError, with the place, where it is none or is refused."""
    try:
        parser = _Parser(text)
        expression = parser.expression()
        parser.expect_end()
    except PatternError as error:
        raise PatternError([_with_text(problem, text) for problem in error.problems]) from error.__cause__
    return expression


def _with_text(problem: Problem, text: str) -> Problem:
    return Problem(problem.message, problem.where, text, problem.span, problem.hint)


def _error(message: str, span: Span, hint: str | None = None) -> PatternError:
    return PatternError(Problem(message, span=span, hint=hint))


class _Parser:
    """A place in the tokens of one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokenize(text)
        self._at = 0
        self._depth = 0

    # Tokens

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _peek(self, offset: int = 1) -> Token:
        return self._tokens[min(self._at + offset, len(self._tokens) - 1)]

    def _take(self) -> Token:
        token = self._next
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def _sees(self, *texts: str) -> bool:
        return self._next.kind in (Kind.WORD, Kind.SYMBOL) and self._next.text in texts

    def _accept(self, *texts: str) -> Token | None:
        return self._take() if self._sees(*texts) else None

    def _expect(self, text: str) -> Token:
        if not self._sees(text):
            raise self._unexpected(f"{text} is expected")
        return self._take()

    def _span(self, start: int) -> Span:
        """From the token at index `start` to the last one taken."""
        return self._tokens[start].start, self._tokens[self._at - 1].end

    def _unexpected(self, expected: str) -> PatternError:
        token = self._next
        if token.kind is Kind.END:
            return _error(f"{expected}, but the text ends here", (max(token.start - 1, 0), max(token.end, 1)))
        written = self._text[token.start : token.end]
        return _error(f"{expected}, found {written!r}", (token.start, token.end))

    def expect_end(self) -> None:
        token = self._next
        if token.text == ";":
            raise _error("one expression is expected; a second statement is refused", (token.start, token.end))
        if token.text == "OVER":
            raise _error(
                "window functions are refused: refer to earlier events by their stage", (token.start, token.end)
            )
        if token.kind is not Kind.END:
            raise self._unexpected("an operator or the end is expected")

    # Boolean operators

    def expression(self) -> Expression:
        return self._chain("OR", lambda: self._chain("AND", self._negation))

    def _chain(self, word: str, operand: Callable[[], Expression]) -> Expression:
        start = self._at
        operands = [operand()]
        while self._accept(word):
            operands.append(operand())
        return operands[0] if len(operands) == 1 else Call(word.lower(), tuple(operands), self._span(start))

    def _negation(self) -> Expression:
        start, negations = self._at, []
        while self._accept("NOT", "!"):
            negations.append(self._at - 1)
        result = self._predicate() if negations else self._predicate(start)
        for start in reversed(negations):
            result = Call("not", (result,), self._span(start))
        return result

    def _predicate(self, start: int | None = None) -> Expression:
        start = self._at if start is None else start
        value = self._value()
        if self._sees("IS"):
            return self._is(start, value)
        negated = self._sees("NOT") and self._peek().text in ("BETWEEN", "IN", *_PATTERNS)
        if negated:
            self._take()
        elif not self._sees("BETWEEN", "IN", *_PATTERNS):
            return value
        word = self._take().text
        function, args = self._predicate_arguments(word)
        result = Call(function, (value, *args), self._span(start))
        return Call("not", (result,), result.span) if negated else result

    def _predicate_arguments(self, word: str) -> tuple[str, tuple[Expression, ...]]:
        if word == "BETWEEN":
            low = self._value()
            self._expect("AND")
            return "between", (low, self._value())
        if word == "IN":
            self._expect("(")
            return "in", tuple(self._list(")"))
        if word in ("LIKE", "ILIKE") and self._sees("ANY", "SOME", "ALL") and self._peek().text == "(":
            quantity = "all" if self._take().text == "ALL" else "any"
            self._take()
            return f"{word.lower()}_{quantity}", tuple(self._list(")"))
        pattern = self._value()
        function = "rlike" if word == "REGEXP" else word.lower()
        return function, (pattern, self._value()) if self._accept("ESCAPE") else (pattern,)

    def _is(self, start: int, value: Expression) -> Expression:
        self._expect("IS")
        negated = self._accept("NOT") is not None
        if self._accept("NULL"):
            return Call("is_not_null" if negated else "is_null", (value,), self._span(start))
        if self._accept("DISTINCT"):
            self._expect("FROM")
            equal, distinct = Call("<=>", (value, self._value()), self._span(start)), not negated
        else:
            word = self._next
            if not self._accept("TRUE", "FALSE", "UNKNOWN"):
                raise self._unexpected("NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM is expected after IS")
            constant = {"TRUE": True, "FALSE": False}.get(word.text)
            type_ = pa.null() if constant is None else pa.bool_()
            literal = Literal(constant, type_, (word.start, word.end))
            equal, distinct = Call("<=>", (value, literal), self._span(start)), negated
        return Call("not", (equal,), equal.span) if distinct else equal

    # Values

    def _value(self, level: int = 0) -> Expression:
        """A value whose operators bind at least as strongly as `_LEVELS[level]`."""
        start = self._at
        left = self._unary()
        return self._operators(start, left, level)

    def _operators(self, start: int, left: Expression, level: int) -> Expression:
        while (found := self._operator(level)) is not None:
            binding, function = found
            self._take()
            right_start = self._at
            right = self._operators(right_start, self._unary(), binding + 1)
            left = Call(function, (left, right), self._span(start))
        return left

    def _operator(self, level: int) -> tuple[int, str] | None:
        if self._next.kind not in (Kind.WORD, Kind.SYMBOL):
            return None
        for binding in range(level, len(_LEVELS)):
            if function := _LEVELS[binding].get(self._next.text):
                return binding, function
        return None

    def _unary(self) -> Expression:
        start, signs = self._at, []
        while self._sees("-", "+", "~"):
            if self._next.text == "-" and self._peek().kind is Kind.NUMBER:
                break  # Spark reads the sign as part of the number: -2147483648 is an INT
            signs.append((self._at, self._take().text))
        result = self._postfix()
        for start, sign in reversed(signs):
            function = {"-": "negate", "+": "positive", "~": "~"}[sign]
            result = Call(function, (result,), self._span(start))
        return result

    def _postfix(self) -> Expression:
        start = self._at
        result = self._primary()
        while True:
            if self._accept("["):
                index = self._nested(self.expression)
                self._expect("]")
                result = Call("index", (result, index), self._span(start))
            elif self._accept("::"):
                result = Call("cast", (result, self._type()), self._span(start))
            elif self._accept("."):
                part, span = self._identifier("a field's name is expected after the point")
                result = Call("field", (result, Literal(part, pa.string(), span)), self._span(start))
            else:
                return result

    def _nested(self, rule: Callable[[], Expression]) -> Expression:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            token = self._next
            raise _error(f"more than {MAX_DEPTH} parentheses within each other", (token.start, token.end))
        result = rule()
        self._depth -= 1
        return result

    def _primary(self) -> Expression:
        token, after = self._next, self._peek()
        if token.kind is Kind.NUMBER or self._sees("-", "."):
            return self._number()
        if token.kind is Kind.STRING:
            return self._string()
        if token.kind is Kind.BYTES:
            digits = self._take().text[2:-1]
            return Literal(
                bytes.fromhex(digits.zfill(len(digits) + len(digits) % 2)), pa.binary(), self._span(self._at - 1)
            )
        if self._accept("("):
            return self._parenthesised()
        if token.kind is Kind.WORD and after.kind is Kind.STRING and token.text in _TIME_READERS:
            return self._time()
        if token.text == "INTERVAL" and (after.kind in (Kind.NUMBER, Kind.STRING) or after.text in ("-", "+")):
            return self._interval()
        if self._sees("NULL", "TRUE", "FALSE"):
            value = {"TRUE": True, "FALSE": False}.get(self._take().text)
            return Literal(value, pa.null() if value is None else pa.bool_(), self._span(self._at - 1))
        if self._sees("CASE"):
            return self._nested(self._case)
        if self._sees("SELECT", "*"):
            what = "subqueries are refused" if token.text == "SELECT" else "'*' is refused: name a column"
            raise _error(what, (token.start, token.end))
        if token.kind is Kind.WORD and token.text not in _RESERVED and after.text == "(" and after.kind is Kind.SYMBOL:
            return self._nested(self._function)
        return self._name()

    def _parenthesised(self) -> Expression:
        result = self._nested(self.expression)
        self._expect(")")
        return result

    def _list(self, close: str) -> list[Expression]:
        items = [self._nested(self.expression)]
        while self._accept(","):
            items.append(self._nested(self.expression))
        self._expect(close)
        return items

    def _identifier(self, expected: str) -> tuple[str, Span]:
        token = self._next
        if token.kind not in (Kind.WORD, Kind.QUOTED):
            raise self._unexpected(expected)
        self._take()
        span = (token.start, token.end)
        return token.text if token.kind is Kind.QUOTED else self._text[token.start : token.end], span

    def _name(self) -> Name:
        if self._next.kind is Kind.WORD and self._next.text in _RESERVED:
            raise self._unexpected("a value is expected")
        parts = [self._identifier("a value is expected")]
        while self._accept("."):
            if self._sees("*"):
                raise _error("'*' is refused: name a column", self._span(self._at))
            parts.append(self._identifier("a name is expected after the point"))
        return Name(tuple(part for part, _ in parts), tuple(span for _, span in parts))

    # Functions

    def _function(self) -> Expression:
        start = self._at
        written = self._take()
        self._expect("(")
        function = written.text.lower()
        special = self._special(function)
        if special is not None:
            function, args = special
        else:
            args = () if self._accept(")") else tuple(self._arguments(function))
        call = Call(function, args, self._span(start))
        if reason := why_refused(function, len(args)):
            raise _error(f"{function}() {reason}", call.span)
        self._refuse_clauses(function)
        return call

    def _refuse_clauses(self, function: str) -> None:
        if self._sees("FILTER", "OVER", "WITHIN") and self._peek().text in ("(", "GROUP"):
            token = self._next
            what = "window functions are refused" if token.text == "OVER" else f"{token.text} is refused"
            hint = "Refer to earlier events by their stage." if token.text == "OVER" else None
            raise _error(f"{what} after {function}(…)", (token.start, token.end), hint)

    def _arguments(self, function: str) -> list[Expression]:
        token = self._next
        if self._sees("DISTINCT"):
            raise _error(f"DISTINCT is refused in {function}(…)", (token.start, token.end))
        if self._sees("*"):
            hint = (
                "Write count(stage) for the number of events that a stage has so far." if function == "count" else None
            )
            raise _error("'*' is refused", (token.start, token.end), hint)
        args: list[Expression] = []
        if function in _UNIT_FUNCTIONS and token.text in _UNITS and self._peek().text == ",":
            self._take()
            args.append(Literal(token.text.lower(), pa.string(), (token.start, token.end)))
            self._expect(",")
        args.append(self._argument())
        while self._accept(","):
            args.append(self._argument())
        self._expect(")")
        return args

    def _argument(self) -> Expression:
        return self._lambda() or self.expression()

    def _lambda(self) -> Call | None:
        start = self._at
        names: list[Name] = []
        if self._peek().text == "->":
            names = [self._name()]
        elif self._sees("(") and self._peek(2).text == ",":
            closing = self._at + 1
            while self._tokens[closing].kind in (Kind.WORD, Kind.QUOTED) or self._tokens[closing].text == ",":
                closing += 1
            if [t.text for t in self._tokens[closing : closing + 2]] != [")", "->"]:
                return None
            self._take()
            names = [self._name()]
            while self._accept(","):
                names.append(self._name())
            self._expect(")")
        if not names:
            return None
        self._expect("->")
        return Call("lambda", (*names, self.expression()), self._span(start))

    def _special(self, function: str) -> tuple[str, tuple[Expression, ...]] | None:
        """Functions with words between their arguments; None: the arguments are a plain list."""
        if function in ("cast", "try_cast"):
            value = self.expression()
            self._expect("AS")
            target = self._type()
            self._expect(")")
            return function, (value, target)
        if function == "extract" and self._peek().text == "FROM":
            field = self._take()
            return self._with_words(
                "extract", [Literal(field.text.lower(), pa.string(), (field.start, field.end))], "FROM"
            )
        if function == "trim":
            return self._trim()
        if function in ("substring", "substr", "overlay", "position"):
            return self._worded(function)
        return None

    def _trim(self) -> tuple[str, tuple[Expression, ...]] | None:
        side = (
            self._next
            if self._sees("BOTH", "LEADING", "TRAILING") and self._peek().text not in (")", ",", ".")
            else None
        )
        if side is not None:
            self._take()
            first: Expression = Literal(side.text.lower(), pa.string(), (side.start, side.end))
            return self._with_words("trim_from", [first], *([] if self._sees("FROM") else [None]), "FROM")
        return self._worded("trim")

    def _worded(self, function: str) -> tuple[str, tuple[Expression, ...]] | None:
        """`f(a FROM b FOR c)` and the like, or None with nothing taken when the arguments are separated by commas."""
        before = self._at
        first = self._value()
        if not self._sees("FROM", "FOR", "PLACING", "IN"):
            self._at = before
            return None
        args = [first]
        while self._accept("FROM", "FOR", "PLACING", "IN"):
            args.append(self._value())
        self._expect(")")
        return f"{function}_from", tuple(args)

    def _with_words(
        self, function: str, args: list[Expression], *words: str | None
    ) -> tuple[str, tuple[Expression, ...]]:
        for word in words:
            if word is not None:
                self._expect(word)
            args.append(self._value())
        self._expect(")")
        return function, tuple(args)

    def _type(self) -> Literal:
        start = self._at
        self._identifier("a type is expected")
        if self._accept("("):
            while self._next.kind is Kind.NUMBER or self._sees(","):
                self._take()
            self._expect(")")
        span = self._span(start)
        text = self._text[slice(*span)]
        return Literal(text, self._checked(span, read_type, text), span)

    def _case(self) -> Expression:
        start = self._at
        self._expect("CASE")
        args: list[Expression] = [] if self._sees("WHEN") else [self.expression()]
        function = "case_of" if args else "case"
        if not self._sees("WHEN"):
            raise self._unexpected("WHEN is expected")
        while self._accept("WHEN"):
            args.append(self.expression())
            self._expect("THEN")
            args.append(self.expression())
        otherwise = self.expression() if self._accept("ELSE") else None
        end = self._expect("END")
        args.append(otherwise or Literal(None, pa.null(), (end.start, end.end)))
        return Call(function, tuple(args), self._span(start))

    # Constants

    def _checked(self, span: Span, read: Callable[..., _T], *args: str) -> _T:
        try:
            return read(*args)
        except ValueError as error:
            raise _error(str(error), span) from error

    def _number(self) -> Literal:
        start = self._at
        self._accept("-")
        self._accept(".")
        if self._next.kind is not Kind.NUMBER:
            raise self._unexpected("a number is expected")
        self._take()
        span = self._span(start)
        value, type_ = self._checked(span, literals.read_number, self._text[slice(*span)])
        return Literal(value, type_, span)

    def _string(self) -> Literal:
        start = self._at
        text = ""
        previous: Token | None = None
        while self._next.kind is Kind.STRING:
            token = self._take()
            if previous is not None and previous.end == token.start and token.text[0] == previous.text[-1]:
                text += token.text[0]  # a doubled quote
            text += literals.read_string(token.text)
            previous = token
        return Literal(text, pa.string(), self._span(start))

    def _time(self) -> Literal:
        start = self._at
        read, type_ = _TIME_READERS[self._take().text]
        text = str(self._string().value)
        span = self._span(start)
        value = self._checked(span, read, text)
        if isinstance(value, datetime) and type_ == pa.timestamp("us"):
            value = value.replace(tzinfo=None)
        return Literal(value, type_, span)

    def _interval(self) -> Expression:
        start = self._at
        self._expect("INTERVAL")
        if self._next.kind is Kind.STRING and self._peek(2).text == "TO":
            text = str(self._string().value)
            first, last = self._take(), (self._take(), self._take())[1]
            words = (text, _singular(first), _singular(last))
            value = self._checked(self._span(start), literals.read_interval_fields, *words)
        else:
            text = self._quantities()
            value = self._checked(self._span(start), literals.read_interval, text)
        span = self._span(start)
        if value is None:
            return Call("interval", (Literal(text, pa.string(), span),), span)
        return Literal(value, pa.duration("us"), span)

    def _quantities(self) -> str:
        if self._next.kind is Kind.STRING and not self._sees_unit(self._peek()):
            return str(self._string().value)
        text: list[str] = []
        while self._next.kind in (Kind.NUMBER, Kind.STRING) or self._sees("-", "+"):
            sign = (self._accept("-", "+") or self._tokens[0]).text if self._sees("-", "+") else ""
            amount = str(self._string().value) if self._next.kind is Kind.STRING else self._take().text
            if not self._sees_unit(self._next):
                raise self._unexpected("a unit (days, hours, minutes, …) is expected")
            text.append(f"{sign}{amount} {self._take().text}")
            if not self._sees_unit(self._peek()):
                break
        return " ".join(text)

    def _sees_unit(self, token: Token) -> bool:
        return token.kind is Kind.WORD and literals.unit_name(token.text) is not None


def _singular(token: Token) -> str:
    return literals.unit_name(token.text) or token.text.lower()


_Reader = Callable[[str], date | datetime]
_TIME_READERS: dict[str, tuple[_Reader, pa.DataType]] = {
    "DATE": (literals.read_date, pa.date32()),
    "TIMESTAMP": (literals.read_timestamp, literals.TIMESTAMP),
    "TIMESTAMP_LTZ": (literals.read_timestamp, literals.TIMESTAMP),
    "TIMESTAMP_NTZ": (literals.read_timestamp, pa.timestamp("us")),
}
