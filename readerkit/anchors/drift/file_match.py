"""Two revisions of a file beside each other: which line became which.

Definitions are paired first, by name and then by likeness, wherever in the file they
stand. The lines of each pair are then aligned by themselves (a frame), so that a
definition which changed its place, or got a new neighbour that looks like it, takes its
own lines along.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from readerkit.anchors.drift.bags import bag_likeness, holders_of, worth_a_look
from readerkit.anchors.drift.edited_lines import Edit, fill_gap
from readerkit.anchors.drift.outline import Block, outline, paired_below, walk
from readerkit.anchors.drift.sequences import align
from readerkit.anchors.drift.stray_lines import find_strays
from readerkit.anchors.drift.text import FileText, Weight

MANY_PAIRS = 2_500
"""Of more pairs only those are compared that share a line which few have."""
RENAMED = 0.5
"""So much of two definitions must be the same where their names differ."""


class FileSide:
    """One revision of a file: its text and its definitions."""

    def __init__(self, path: str, data: bytes) -> None:
        self.path = path
        self.is_python = path.endswith((".py", ".pyi", ".pyx"))
        self.text = FileText(data)
        self._outline: Block | None = None

    @property
    def outline(self) -> Block:
        """The whole file as a block."""
        if self._outline is None:
            self._outline = outline(self.text, self.path)
        return self._outline

    def block_at(self, line: int) -> Block:
        """Return the innermost definition that holds a line."""
        block = self.outline
        while True:
            inner = (b for b in block.children if b.first <= line <= b.last)
            found = next(inner, None)
            if found is None:
                return block
            block = found


@dataclass(slots=True)
class FrameItem:
    """A line of a frame, or a whole definition inside it; from 0, both included."""

    first: int
    last: int


@dataclass(slots=True, eq=False)
class PairedLines:
    """The lines of a pair of definitions that are in none of their paired ones."""

    old: list[FrameItem]
    new: list[FrameItem]
    pairs: dict[int, int]
    """Positions in ``old`` and ``new`` of the same lines, and of paired definitions."""
    exact: set[int]
    """The positions in ``old`` whose line is there word for word."""
    likeness: float
    """How much of the pair is the same: 0 to 1."""
    by_name: bool
    edits: dict[int, Edit] = field(default_factory=dict)
    """What became of edited lines, by position; found when a gap is asked for."""
    strays: dict[int, int] | None = None
    """Where lines are that went past others, by position."""
    filled: set[int] = field(default_factory=set)
    """The gaps whose edited lines were looked for, by where they begin."""


class FileMatch:
    """The frames of two revisions of a file, or of two parts of two files."""

    def __init__(
        self,
        old: FileSide,
        new: FileSide,
        weight: Weight,
        roots: tuple[Block, Block] | None = None,
    ) -> None:
        self.old, self.new, self.weight = old, new, weight
        self.roots = roots or (old.outline, new.outline)
        self.frame_of: dict[int, tuple[PairedLines, int]] = {}
        """By the number of an old line: its frame, and its position there."""
        self.image: dict[int, int] = {}
        """By the number of an old line: the new one, word for word."""
        self.pair_of: dict[int, tuple[Block, bool]] = {}
        """By id of an old block: the new one, and whether its name led there."""
        self._pair()
        self._align()
        self.taken = set(self.image.values())

    # --- definitions ---

    def _pair(self) -> None:
        old_left: list[Block] = []
        new_left: list[Block] = []
        todo = [self.roots]
        one, other = self.roots
        self.pair_of[id(one)] = other, one.name == other.name
        while todo:
            mine, theirs = todo.pop()
            pairs, less, more = self._by_name(mine.children, theirs.children)
            for one, other in pairs:
                self.pair_of[id(one)] = other, True
            more_pairs, less, more = self._by_likeness(less, more, RENAMED)
            for one, other in more_pairs:
                self.pair_of[id(one)] = other, False
            todo += pairs + more_pairs
            old_left += less
            new_left += more
        self._pair_across(old_left, new_left)

    def _pair_across(self, old_left: list[Block], new_left: list[Block]) -> None:
        """Pair what stands in another definition now: a method that changed class."""
        mine = [b for top in old_left for b in walk(top)]
        theirs = [b for top in new_left for b in walk(top)]
        if not mine or not theirs or len(mine) * len(theirs) > 250_000:
            return
        pairs, _, _ = self._by_likeness(mine, theirs, RENAMED, name_helps=True)
        taken: set[int] = set()
        for one, other in pairs:
            if id(other) not in taken:
                taken.add(id(other))
                self.pair_of[id(one)] = other, False

    def _by_name(
        self, old: list[Block], new: list[Block]
    ) -> tuple[list[tuple[Block, Block]], list[Block], list[Block]]:
        mine, theirs = _named(old), _named(new)
        pairs: list[tuple[Block, Block]] = []
        less: list[Block] = []
        more: list[Block] = []
        for name, blocks in mine.items():
            others = theirs.pop(name, [])
            if len(blocks) == len(others):
                pairs += zip(blocks, others, strict=True)
            else:
                found, rest, left = self._by_likeness(blocks, others, 0.1)
                pairs += found
                less += rest
                more += left
        for others in theirs.values():
            more += others
        return pairs, less, more

    def _by_likeness(
        self,
        old: list[Block],
        new: list[Block],
        least: float,
        *,
        name_helps: bool = False,
    ) -> tuple[list[tuple[Block, Block]], list[Block], list[Block]]:
        if not old or not new:
            return [], old, new
        bags = [self._bag(b, self.new.text) for b in new]
        holders = holders_of(bags) if len(old) * len(new) > MANY_PAIRS else None
        scored = []
        for i, one in enumerate(old):
            bag = self._bag(one, self.old.text)
            for j in worth_a_look(bag, holders, len(new)):
                other = new[j]
                like = bag_likeness(bag, bags[j], self.weight)
                if name_helps and one.name == other.name:
                    like = min(1.0, like + 0.2)
                if like >= least:
                    scored.append((-like, abs(i - j), i, j))
        pairs, used_old, used_new = [], set(), set()
        for _, _, i, j in sorted(scored):
            if i not in used_old and j not in used_new:
                used_old.add(i)
                used_new.add(j)
                pairs.append((old[i], new[j]))
        less = [b for i, b in enumerate(old) if i not in used_old]
        more = [b for j, b in enumerate(new) if j not in used_new]
        return pairs, less, more

    def _bag(self, block: Block, text: FileText) -> Counter[bytes]:
        return Counter(text.keys[block.first : block.last + 1])

    # --- lines ---

    def _align(self) -> None:
        news = [new for new, _ in self.pair_of.values()]
        names = {id(new): number for number, new in enumerate(news)}
        for one in walk(self.roots[0]):
            if id(one) in self.pair_of:
                other, by_name = self.pair_of[id(one)]
                self._align_pair(one, other, names, by_name=by_name)

    def _align_pair(
        self, one: Block, other: Block, names: dict[int, int], *, by_name: bool
    ) -> None:
        old_items, old_keys = self._items(one, self.old.text, self._is_paired)
        new_items, new_keys = self._items(
            other, self.new.text, lambda b: id(b) in names
        )
        # A pair stands in each sequence under one number; its first line as another.
        marks_old: list[bytes | int] = [
            names[id(self.pair_of[id(key)][0])] if isinstance(key, Block) else key
            for key in old_keys
        ]
        marks_new: list[bytes | int] = [
            names[id(key)] if isinstance(key, Block) else key for key in new_keys
        ]
        if one is not self.roots[0]:
            i, j = _head(old_items, one.head), _head(new_items, other.head)
            if i is not None and j is not None:
                marks_old[i] = marks_new[j] = -1
        pairs = dict(align(marks_old, marks_new, self._mark_weight))
        _settle(pairs, old_keys, new_keys, self.weight)
        exact = {
            i
            for i, j in pairs.items()
            if isinstance(old_keys[i], Block) or old_keys[i] == new_keys[j]
        }
        total = self._total(marks_old) + self._total(marks_new)
        same = 2 * self._total([marks_old[i] for i in exact])
        frame = PairedLines(
            old_items, new_items, pairs, exact, same / total if total else 1.0, by_name
        )
        for position, item in enumerate(old_items):
            if isinstance(old_keys[position], Block):
                continue
            self.frame_of[item.first] = frame, position
            if position in exact:
                self.image[item.first] = new_items[pairs[position]].first

    def _mark_weight(self, mark: object) -> float:
        return self.weight(mark) if isinstance(mark, bytes) else 4.0

    def _total(self, marks: list[bytes | int]) -> float:
        lines = [mark for mark in marks if isinstance(mark, bytes)]
        return sum(map(self.weight, lines)) + 4.0 * (len(marks) - len(lines))

    def _is_paired(self, block: Block) -> bool:
        return id(block) in self.pair_of

    def _items(
        self, block: Block, text: FileText, is_paired: Callable[[Block], bool]
    ) -> tuple[list[FrameItem], list[Block | bytes]]:
        """Return a block's lines, each paired definition in it as one."""
        items: list[FrameItem] = []
        keys: list[Block | bytes] = []
        inner = sorted(paired_below(block, is_paired), key=lambda b: b.first)
        at = block.first
        for child in [*inner, None]:
            stop = child.first if child else block.last + 1
            for number in range(at, stop):
                items.append(FrameItem(number, number))
                keys.append(text.keys[number])
            if child:
                items.append(FrameItem(child.first, child.last))
                keys.append(child)
                at = max(at, child.last + 1)
        return items, keys

    # --- gaps ---

    def gap(self, frame: PairedLines, position: int) -> tuple[int, int, int, int]:
        """Return the gap that a position stands in, its edited lines paired.

        Returns:
            The first and the last but one position of the gap in old and in new.
        """
        a = b = position
        while a > 0 and a - 1 not in frame.pairs:
            a -= 1
        while b < len(frame.old) and b not in frame.pairs:
            b += 1
        c = frame.pairs[a - 1] + 1 if a else 0
        d = frame.pairs[b] if b < len(frame.old) else len(frame.new)
        if a not in frame.filled:
            frame.filled.add(a)
            old = [i.first if i.first == i.last else -1 for i in frame.old[a:b]]
            new = [i.first if i.first == i.last else -1 for i in frame.new[c:d]]
            for edit in fill_gap(self.old.text, old, self.new.text, new):
                frame.edits[a + edit.old] = edit._replace(
                    old=a + edit.old, first=c + edit.first, last=c + edit.last
                )
        return a, b, c, d

    def out_of_order(self, frame: PairedLines, position: int) -> int:
        """Return the position in new of a line that went past others; -1 for none.

        The only one left that is the same, or that gives a value to the same name.
        """
        if frame.strays is None:
            old = [i.first if i.first == i.last else -1 for i in frame.old]
            new = [i.first if i.first == i.last else -1 for i in frame.new]
            texts = self.old.text, self.new.text
            frame.strays = find_strays(*texts, old, new, frame.pairs, self.weight)
        return frame.strays.get(position, -1)


def _settle(
    pairs: dict[int, int],
    old: list[Block | bytes],
    new: list[Block | bytes],
    weight: Weight,
) -> None:
    """Put a bracket that closes right below the line it closes, if it stands there.

    Of several like it any could be paired: the one that stayed is the one that is near.
    """
    taken = {*pairs.values()}
    for i in sorted(pairs):
        key, above = old[i], pairs.get(i - 1, -1)
        near = above + 1
        if (
            isinstance(key, bytes)
            and not weight(key)
            and 0 < near < pairs[i]
            and near not in taken
            and new[near] == key
        ):
            pairs[i] = near


def _named(blocks: Iterable[Block]) -> dict[bytes, list[Block]]:
    found: dict[bytes, list[Block]] = defaultdict(list)
    for block in blocks:
        found[block.name].append(block)
    return found


def _head(items: list[FrameItem], line: int) -> int | None:
    at = (n for n, item in enumerate(items) if item.first == line == item.last)
    return next(at, None)
