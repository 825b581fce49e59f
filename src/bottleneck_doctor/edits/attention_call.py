"""The edit that puts torch's one function in the place of attention that is written out: source text and the line of
its softmax in, `ChangeText` or nothing out. Pure.

The chain from the first product to the second is followed through the names that it is assigned to. Nothing is edited
where one of them is read elsewhere, where anything but a scale, a mask and dropout lies between, or where what the
chain takes is assigned again on the way.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import libcst as cst

from bottleneck_doctor.edits.arguments import LONGEST_LINE
from bottleneck_doctor.edits.diff import ChangeText, as_change
from bottleneck_doctor.edits.tree import (
    SCOPES,
    STATEMENTS,
    Edit,
    SourceTree,
    Statement,
    code,
    constant,
    dotted,
    has_comment,
    last_name,
    names_of,
    put,
    small,
)
from bottleneck_doctor.runtime.wire.equations import is_product

HIDES = -1e3
"""What is filled with this or less counts for nothing after a softmax."""
HIDES_SCALED = -1e6
"""The same for what is scaled after it, by a number that nobody knows."""
_PLAIN = (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.Integer, cst.Float)
"""What needs no parentheses, whatever stands around it."""
_LAST: Sequence[set[object]] = ({-1, -2},)
_LAST_OF_THREE: Sequence[set[object]] = (*_LAST, {1, 2})
_LAST_OF_FOUR: Sequence[set[object]] = (*_LAST, {2, 3})
"""How the last two dimensions may be told, in general and of what has three or four."""
_LATER = (cst.BaseComp, cst.Lambda)
"""What is in these is computed later, or several times."""


class _Unknown(Exception):
    """Something in the chain that torch's function does not do, or that may not be attention."""


def attention_change(source: str, line: int) -> ChangeText | None:
    """Call `scaled_dot_product_attention` in the place of the attention whose softmax stands on `line` (from 1)."""
    tree = SourceTree.parse(source)
    statement = None if tree is None else tree.innermost(line)
    name = None if tree is None else _functional(tree)
    if tree is None or statement is None or name is None:
        return None
    for product in _products_from(tree, statement):
        chain = _Chain(tree, product)
        try:
            given = chain.given()
        except _Unknown:
            continue
        if any(tree.covers(each, line) for each in chain.softmaxes) and chain.is_sure():
            edited = chain.edited(f"{name}.scaled_dot_product_attention", given)
            return None if edited is None else as_change(source, edited, line, "")
    return None


def _functional(tree: SourceTree) -> str | None:
    """What the file calls `torch.nn.functional`; None where it imports no torch."""
    names: dict[str, str] = {}
    for node in tree.nodes((cst.Import, cst.ImportFrom)):
        inside = "" if isinstance(node, cst.Import) or node.module is None else f"{dotted(node.module)}."
        for alias in names_of(node):
            if alias.asname is not None or inside:
                names.setdefault(inside + dotted(alias.name), alias.evaluated_alias or dotted(alias.name))
    if "torch.nn.functional" in names:
        return names["torch.nn.functional"]
    if "torch.nn" in names:
        return f"{names['torch.nn']}.functional"
    return None if tree.torch_name is None else f"{tree.torch_name}.nn.functional"


def _products_from(tree: SourceTree, statement: Statement) -> Iterator[cst.BaseExpression]:
    """The products in a block from a statement on; of one statement, the outer ones first."""
    block = tree.block(next(tree.around(statement)))
    for each in block[block.index(statement) :] if statement in block else ():
        for node in tree.nodes((cst.BinaryOperation, cst.Call), within=each):
            if _factors(node) is not None:
                yield node


def _factors(node: cst.CSTNode) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    """What a product is of; None for anything else."""
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.MatrixMultiply):
        return node.left, node.right
    if not isinstance(node, cst.Call) or last_name(node.func) not in ("matmul", "bmm", "einsum"):
        return None
    if any(each.keyword is not None or each.star for each in node.args):
        return None
    values = [each.value for each in node.args]
    if last_name(node.func) == "einsum":
        return (values[1], values[2]) if _is_einsum(node) or _is_einsum(node, turned=True) else None
    if len(values) == 1 and isinstance(node.func, cst.Attribute):
        values.insert(0, node.func.value)
    return (values[0], values[1]) if len(values) == 2 else None


@dataclass(frozen=True)
class _Condition:
    """An `if` whose last statement masks. The others stay."""

    whole: cst.If
    others: tuple[Statement, ...]
    last: Statement

    @classmethod
    def of(cls, statement: Statement, name: str) -> _Condition | None:
        """The condition under which a statement masks the tensor of this name; None if it does anything else."""
        if not isinstance(statement, cst.If) or statement.orelse is not None:
            return None
        body = [each for each in statement.body.body if isinstance(each, STATEMENTS)]
        if not body or name not in (*_assigned(body[-1]), _filled(body[-1])):
            return None
        return cls(statement, tuple(body[:-1]), body[-1])


@dataclass
class _Chain:
    """From the second product back to the first. `taken`: the statements that nothing but the chain needs."""

    tree: SourceTree
    product: cst.BaseExpression
    taken: list[Statement] = field(default_factory=list)
    condition: _Condition | None = None
    """That of the mask, one of those taken."""
    softmaxes: list[cst.CSTNode] = field(default_factory=list)
    uses: list[tuple[cst.CSTNode, Statement]] = field(default_factory=list)
    """What the new call takes (queries, keys, mask, scale), and where it stood. All is computed later than it was."""

    def given(self) -> list[str]:
        """What torch's function is given, as code. Raises `_Unknown`."""
        factors = _factors(self.product)
        assert factors is not None
        self._block = self._around(self.product)
        self._last = self._statement(self.product)
        self._at = self._block.index(self._last)
        weights, values = self._followed(factors[0]), factors[1]
        dropout = self._dropout(weights)
        if dropout is not None:
            assert isinstance(weights, cst.Call)
            weights = self._followed(weights.args[0].value)
        scores = self._followed(self._softmax(weights), masks=True)
        mask, scale = "", ""
        behind = self._scale_behind_mask(scores)
        if behind is not None:
            scale, scores = behind
        masked = self._mask(scores, scaled=bool(scale))
        if masked is None and self.condition is not None:
            raise _Unknown
        if masked is not None:
            mask, scores = self._conditional(masked[0]), self._followed(masked[1])
        scaled = None if scale else self._scale(scores)
        if scaled is not None:
            scale, scores = scaled[0], self._followed(scaled[1])
        found = _factors(scores)
        # The rows of the keys are what the queries are multiplied by: `einsum` has them, a product has columns.
        by_rows = _is_einsum(scores, turned=True)
        if found is None or _is_einsum(scores) or _is_einsum(self.product, turned=True):
            raise _Unknown
        queries, turned = found
        # What `bmm` takes has three dimensions.
        last = _LAST_OF_THREE if _is_bmm(scores) else _LAST_OF_FOUR if self._is_view_of_four(turned) else _LAST
        keys = code(_bare(turned)) if by_rows else _turned_back(turned, last)
        self._use(queries)
        self._use(turned)
        given = [code(_bare(queries)), keys, code(_bare(values))]
        given += [f"attn_mask={mask}"] if mask else []
        given += [f"dropout_p={dropout}"] if dropout else []
        return [*given, f"scale={scale or '1.0'}"]

    def is_sure(self) -> bool:
        """Whether nothing else needs what goes, and nothing that the call takes changes on the way."""
        function = self.tree.function(self.product)
        if function is None or any(has_comment(each) for each, _ in self.uses):
            return False
        if any(
            isinstance(each, _LATER) for each in self.tree.around(self.product) if self.tree.holds(self._last, each)
        ):
            return False
        gone = [each for each in self.taken if self.condition is None or each is not self.condition.whole]
        gone += [] if self.condition is None else [self.condition.last]
        if any(not _assigned(each) and not _filled(each) for each in gone):
            return False
        targets = {name for each in gone for name in _assigned(each)}
        factors = _factors(self.product)
        assert factors is not None
        for each in self.tree.nodes(cst.Name, within=function):
            if each.value in targets and not any(self.tree.holds(part, each) for part in (*gone, factors[0])):
                return False
        return not any(self._changes(node, stood, targets) for node, stood in self.uses)

    def _changes(self, node: cst.CSTNode, stood: Statement, targets: set[str]) -> bool:
        """Whether what the new call takes may be another by then than where it stood."""
        needed = {each.value for each in self.tree.nodes(cst.Name, within=node)}
        between = [each for each in self._block[self._block.index(stood) : self._at] if each not in self.taken]
        condition = self.condition
        if condition is not None and not self.tree.holds(condition.last, node):
            between += condition.others
        return bool(needed & targets) or any(
            isinstance(each, SCOPES)
            or needed & _written_names(self.tree, each)
            or self.tree.nodes(cst.Del, within=each)
            for each in between
        )

    def edited(self, function: str, given: Sequence[str]) -> str | None:
        """The source with a call of the function in the place of the chain."""
        call = f"{function}({', '.join(given)})"
        if self.tree.place(self.product)[1] + len(call) > LONGEST_LINE:
            call = f"{function}(\n" + "".join(f"    {each},\n" for each in given) + ")"
        new = cst.parse_expression(call)
        # Around a product, parentheses say what an attribute is of.
        alone = isinstance(next(self.tree.around(self.product)), cst.Attribute)
        edits: dict[cst.CSTNode, Edit] = {self.product: (lambda node: new) if alone else put(new)}
        gone: list[cst.CSTNode] = list(self.taken)
        if self.condition is not None and self.condition.others:
            gone[self.taken.index(self.condition.whole)] = self.condition.last
        return self.tree.edited(edits | {each: lambda node: cst.RemoveFromParent() for each in gone})

    # -- following -----------------------------------------------------------------------------------------------------

    def _statement(self, node: cst.CSTNode) -> Statement:
        found = self.tree.statement(node)
        if found is None:
            raise _Unknown
        return found

    def _around(self, node: cst.CSTNode) -> list[Statement]:
        block = self.tree.block(next(self.tree.around(self._statement(node))))
        if self._statement(node) not in block:
            raise _Unknown
        return block

    def _followed(self, node: cst.BaseExpression, *, masks: bool = False) -> cst.BaseExpression:
        """What an expression is: of a name, the value that the block assigned to it last. `masks`: that may be a mask,
        under a condition."""
        while isinstance(node, cst.Name):
            end = self._block.index(self.taken[-1]) if self.taken else self._at
            name = node.value
            condition = None
            for found in reversed(self._block[:end]):
                condition = _Condition.of(found, name) if masks else None
                if condition is not None or name in (*_assigned(found), _filled(found)):
                    break
            else:
                raise _Unknown
            inner = small(found if condition is None else condition.last)
            if not isinstance(inner, (cst.Assign, cst.Expr)):
                raise _Unknown
            self.taken.append(found)
            node = inner.value
            if condition is not None:
                self.condition = condition
                break
        return node

    def _is_view_of_four(self, node: cst.BaseExpression) -> bool:
        """Whether a tensor surely has four dimensions: it is a view of so many, perhaps turned."""
        end = next((at for at, each in enumerate(self._block) if self.tree.holds(each, node)), 0)
        while True:
            node = _bare(node)
            if isinstance(node, cst.Name):
                name = node.value
                written = (at for at in reversed(range(end)) if name in _written_names(self.tree, self._block[at]))
                end = next(written, -1)
                made = small(self._block[end]) if end >= 0 and name in _assigned(self._block[end]) else None
                if not isinstance(made, cst.Assign):
                    return False
                node = made.value
                continue
            if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
                return False
            method = node.func.attr.value
            if method != "transpose":
                plain = all(each.keyword is None and not each.star for each in node.args)
                return method in ("view", "reshape") and plain and len(node.args) == 4
            node = node.func.value

    def _use(self, node: cst.CSTNode) -> None:
        """The new call takes this, which stood where it was followed to."""
        stood = next((each for each in (node, *self.tree.around(node)) if each in self._block), None)
        assert isinstance(stood, STATEMENTS)
        self.uses.append((node, stood))

    def _conditional(self, mask: str) -> str:
        """The mask under its condition, if it has one."""
        if self.condition is None:
            return mask
        self._use(self.condition.whole.test)
        return f"{mask} if {code(_bare(self.condition.whole.test))} else None"

    # -- what lies between ---------------------------------------------------------------------------------------------

    def _dropout(self, node: cst.BaseExpression) -> str | None:
        """The chance that a dropout layer drops with, as code; None where the node is no such layer's call."""
        if not isinstance(node, cst.Call) or "drop" not in last_name(node.func).lower():
            return None
        owner = node.func.value if isinstance(node.func, cst.Attribute) else None
        alone = len(node.args) == 1 and node.args[0].keyword is None and not node.args[0].star
        if not alone or not isinstance(owner, cst.Name) or owner.value != "self":
            raise _Unknown
        return f"{code(node.func)}.p if self.training else 0.0"

    def _softmax(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """What the softmax is of."""
        if not isinstance(node, cst.Call):
            raise _Unknown
        name = last_name(node.func.func if isinstance(node.func, cst.Call) else node.func).lower()
        if "softmax" not in name and name != "attend":
            raise _Unknown
        keywords = {each.keyword.value for each in node.args if each.keyword is not None}
        if keywords - {"dim"} or any(each.star for each in node.args):
            raise _Unknown
        self.softmaxes.append(node)
        given = [each.value for each in node.args if each.keyword is None]
        owner = node.func.value if isinstance(node.func, cst.Attribute) else None
        # A number is the dimension of a method; all else is what a function or a module is given.
        method = owner is not None and (not given or constant(given[0]) is not None)
        if method and owner is not None:
            return owner
        if not given:
            raise _Unknown
        return given[0]

    def _mask(self, node: cst.BaseExpression, *, scaled: bool) -> tuple[str, cst.BaseExpression] | None:
        """The mask as torch's function takes it, and what is masked. `scaled`: and the scale comes after it."""
        if not scaled and isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add):
            self._use(node.right)
            return code(_bare(node.right)), node.left
        if not _is_fill(node):
            return None
        assert isinstance(node, cst.Call)
        values = [each.value for each in node.args if each.keyword is None and not each.star]
        hides = HIDES_SCALED if scaled else HIDES
        if not isinstance(node.func, cst.Attribute) or len(values) != 2 or len(node.args) != 2:
            raise _Unknown
        if not _hides(values[1], hides):
            raise _Unknown
        self._use(values[0])
        return _negated(values[0]), node.func.value

    def _scale_behind_mask(self, node: cst.BaseExpression) -> tuple[str, cst.BaseExpression] | None:
        """As `_scale`, of what was masked before; followed to that. None where no mask comes before the scale."""
        if not isinstance(node, cst.BinaryOperation) or isinstance(node.operator, cst.Add):
            return None
        # Whether it was masked is known once it is followed, and what else it may be is followed in another order.
        taken, uses, condition = list(self.taken), list(self.uses), self.condition
        scaled = self._scale(node)
        if scaled is not None:
            with contextlib.suppress(_Unknown):
                scores = self._followed(scaled[1], masks=True)
                number = constant(self.uses[-1][0])
                if _is_fill(scores) and (number is None or _is_positive(number[0])):
                    return scaled[0], scores
        self.taken, self.uses, self.condition = taken, uses, condition
        return None

    def _scale(self, node: cst.BaseExpression) -> tuple[str, cst.BaseExpression] | None:
        """The scale as torch's function takes it, and what is scaled."""
        if not isinstance(node, cst.BinaryOperation):
            return None
        if isinstance(node.operator, cst.Divide):
            self._use(node.right)
            return f"1 / {_grouped(node.right)}", node.left
        if not isinstance(node.operator, cst.Multiply):
            return None
        number, other = node.right, node.left
        if _factors(other) is None and _factors(number) is not None:
            number, other = other, number
        self._use(number)
        return code(_bare(number)), other


def _is_fill(node: cst.CSTNode) -> bool:
    """Whether it is a call that fills masked places, in the same tensor or a new one."""
    return isinstance(node, cst.Call) and last_name(node.func) in ("masked_fill", "masked_fill_")


def _assigned(statement: Statement) -> list[str]:
    """The one name that a statement assigns, if it does nothing else."""
    inner = small(statement)
    if isinstance(inner, cst.Assign) and len(inner.targets) == 1 and isinstance(inner.targets[0].target, cst.Name):
        return [inner.targets[0].target.value]
    return []


def _filled(statement: Statement) -> str:
    """The name of the tensor whose masked places a statement fills; "" if it does nothing of this kind."""
    inner = small(statement)
    call = inner.value if isinstance(inner, cst.Expr) else None
    if not isinstance(call, cst.Call) or last_name(call.func) != "masked_fill_":
        return ""
    return last_name(call.func.value) if isinstance(call.func, cst.Attribute) else ""


def _is_positive(value: object) -> bool:
    return isinstance(value, (int, float)) and value > 0


def _bare(node: cst.BaseExpression) -> cst.BaseExpression:
    return node.with_changes(lpar=(), rpar=())


def _grouped(node: cst.BaseExpression) -> str:
    bare = _bare(node)
    return code(bare) if isinstance(bare, _PLAIN) else f"({code(bare)})"


def _is_einsum(node: cst.BaseExpression, *, turned: bool = False) -> bool:
    """Whether it is `einsum` of two, whose equation is that of a product (`is_product`)."""
    if not isinstance(node, cst.Call) or last_name(node.func) != "einsum" or len(node.args) != 3:
        return False
    said = node.args[0].value
    if isinstance(said, cst.FormattedString):
        texts = [each.value for each in said.parts if isinstance(each, cst.FormattedStringText)]
        return len(texts) == len(said.parts) and is_product("".join(texts), turned=turned)
    known = constant(said)
    return known is not None and isinstance(known[0], str) and is_product(known[0], turned=turned)


def _is_bmm(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Call) and last_name(node.func) == "bmm"


def _turned_back(node: cst.BaseExpression, last: Sequence[set[object]]) -> str:
    """The keys, of which a product takes the columns. `last`: how the last two dimensions may be told."""
    bare = _bare(node)
    if isinstance(bare, cst.Attribute) and bare.attr.value == "mT":
        return code(_bare(bare.value))
    if isinstance(bare, cst.Call) and isinstance(bare.func, cst.Attribute) and bare.func.attr.value == "transpose":
        numbers = [constant(each.value) for each in bare.args]
        if {each[0] for each in numbers if each is not None} in last:
            return code(_bare(bare.func.value))
    return f"{_grouped(node)}.transpose(-2, -1)"


def _hides(node: cst.BaseExpression, most: float) -> bool:
    """Whether what is filled with this value counts for nothing after a softmax: it is `most` or less."""
    known = constant(node)
    if known is not None:
        return isinstance(known[0], (int, float)) and known[0] <= most
    text = "".join(code(_bare(node)).split()).replace("'", '"').lower()
    return text in ('float("-inf")', '-float("inf")', "-torch.inf", "-math.inf", "-np.inf") or text.endswith(").min")


def _negated(node: cst.BaseExpression) -> str:
    """A mask that is true where the other one is not."""
    bare = _bare(node)
    if isinstance(bare, cst.UnaryOperation) and isinstance(bare.operator, cst.BitInvert):
        return code(_bare(bare.expression))
    if isinstance(bare, cst.Comparison) and len(bare.comparisons) == 1:
        (compared,) = bare.comparisons
        if isinstance(compared.operator, cst.Equal):
            return f"{code(bare.left)} != {code(compared.comparator)}"
    return f"~{_grouped(node)}"


def _written_names(tree: SourceTree, statement: Statement) -> set[str]:
    """The names that a statement may assign, or change in place."""
    kinds = tree.nodes((cst.AssignTarget, cst.AugAssign, cst.AnnAssign), within=statement)
    names = {each.value for node in kinds for each in tree.nodes(cst.Name, within=node.target)}
    methods = [each for each in tree.nodes(cst.Call, within=statement) if last_name(each.func).endswith("_")]
    return names | {each.value for node in methods for each in tree.nodes(cst.Name, within=node)}
