"""Which layout: every way to cut a model over a cluster, weighed and ranked.

A layout is tp, pp, cp, ep, dp and a ZeRO stage; its variants are microbatch size,
recompute and pipeline chunks. The best variant that fits stands for its layout. The
search adds up the same pieces as ``memory`` and ``step_time``, each made once; what it
ranks is then computed anew by those, so that a plan can be checked item by item.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import ceil, inf
from operator import add

from readerkit.errors import EstimateError
from readerkit.estimate.hardware import Cluster
from readerkit.estimate.layout import Layout, misfits
from readerkit.estimate.memory import (
    ActivationPieces,
    RankMemory,
    activation_pieces,
    gathered_bytes,
    most_loaded,
    state_bytes,
    telling_ranks,
)
from readerkit.estimate.quantity import (
    MAX_RANKS,
    Number,
    check_amount,
    check_count,
    check_fraction,
)
from readerkit.estimate.shape import Shape, parameter_count
from readerkit.estimate.states import precision
from readerkit.estimate.step_time import (
    Assumptions,
    StepTime,
    axis_seconds,
    compose,
    group_seconds,
    microbatch_seconds,
    ranks_in_node,
    step_time,
    strides,
)
from readerkit.estimate.volumes import dp_step_traffic, model_step_traffic

MICRO_BATCHES = (1, 2, 4, 8, 16)
MAX_CHUNKS = 8
MIN_CONTEXT = 4096
"""Tokens of a sequence on one rank below which context parallel is not tried."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be trained on what."""

    shape: Shape
    cluster: Cluster
    gpus: int
    global_batch: int
    sequence: int = 4096
    convention: str = "mixed-18"
    vocab_multiple: int = 1
    reserve: float = 0.1
    flash: bool = True
    assumptions: Assumptions = field(default_factory=Assumptions)
    tokens: Number | None = None
    """Of the whole training, for days; None: only a step is timed."""
    deadline_days: Number | None = None

    @property
    def usable_bytes(self) -> float:
        """What one GPU offers."""
        return float(self.cluster.gpu.memory_bytes * (1 - self.reserve))

    @property
    def step_tokens(self) -> int:
        """Tokens of one step."""
        return self.global_batch * self.sequence


@dataclass(frozen=True, slots=True)
class Ranked:
    """A layout that fits, in its best variant."""

    layout: Layout
    memory: RankMemory
    time: StepTime
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rejected:
    """Layouts that fall out for one reason, and the one that came nearest."""

    why: str
    count: int
    example: str


@dataclass(frozen=True, slots=True)
class Plan:
    """The answer: layouts in order, and what became of the others."""

    question: Question
    ranked: tuple[Ranked, ...]
    rejected: tuple[Rejected, ...]
    examined: int
    """Variants that were weighed."""
    fitting: int
    """Layouts with a variant that fits."""
    memory_reason: str
    time_reason: str


# --- 1. every way to cut --------------------------------------------------------------


def divisors(number: int) -> list[int]:
    """Return the divisors of a number, in order."""
    small = [d for d in range(1, int(number**0.5) + 1) if number % d == 0]
    return sorted({*small, *(number // d for d in small)})


def cuts(question: Question) -> Iterator[Layout]:
    """Yield every product tp × pp × cp × dp that is the number of GPUs, with ep."""
    shape, gpus = question.shape, question.gpus
    for tp in divisors(gpus):
        for pp in divisors(gpus // tp):
            for cp in divisors(gpus // tp // pp):
                dp = gpus // tp // pp // cp
                for ep in divisors(shape.experts) if shape.experts else [1]:
                    if dp * cp % ep == 0:
                        yield Layout(
                            dp=dp,
                            tp=tp,
                            pp=pp,
                            cp=cp,
                            ep=ep,
                            sequence=question.sequence,
                            flash=question.flash,
                            recompute="none",
                        )


def variants(question: Question, cut: Layout) -> Iterator[tuple[int, int, list[int]]]:
    """Yield microbatch size, microbatches, and the chunks that these allow."""
    each = question.global_batch // cut.dp
    layers = question.shape.layers
    for micro_batch in MICRO_BATCHES:
        if each % micro_batch:
            continue
        microbatches, chunks = each // micro_batch, [1]
        if cut.pp > 1 and microbatches % cut.pp == 0 and layers % cut.pp == 0:
            rank_layers = layers // cut.pp
            chunks = [v for v in divisors(rank_layers) if v <= MAX_CHUNKS]
        yield micro_batch, microbatches, chunks


# --- 2. the search --------------------------------------------------------------------


@dataclass(slots=True)
class _Best:
    """The best variant of one layout so far, and the one that needs least memory."""

    stage: Layout
    seconds: float = inf
    fastest: tuple[Layout, int] | None = None
    """Its microbatches and recompute, and its chunks; None: nothing fits yet."""
    least_bytes: float = inf
    least: tuple[Layout, int] | None = None

    @property
    def layout(self) -> Layout | None:
        """The fastest variant that fits."""
        return _variant(self.stage, self.fastest) if self.fastest else None

    @property
    def leanest(self) -> Layout | None:
        """The variant that needs least memory."""
        return _variant(self.stage, self.least) if self.least else None


def _variant(stage: Layout, chosen: tuple[Layout, int]) -> Layout:
    base, v = chosen
    schedule = "interleaved" if v > 1 else "1f1b"
    return replace(base, zero=stage.zero, virtual_stages=v, schedule=schedule)


@dataclass(frozen=True, slots=True)
class _Seconds:
    """Times that the variants of one microbatch size and recompute share."""

    microbatch: float
    blocking: float
    """Tensor and expert parallel, for one microbatch."""
    send: float
    """The messages of the pipeline, for one microbatch and chunk."""
    tie: float
    """The sum of a tied table, once in a step."""
    context: float
    """Context parallel, for one microbatch."""


class _Search:
    """One pass over all variants, with the pieces they share made once."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self.kept = precision(question.convention)
        # Flash attention has no scores to recompute: selective would be none.
        kinds = ("none", "full") if question.flash else ("none", "selective", "full")
        self.recomputes = kinds
        self.examined = 0
        self.dropped: dict[str, tuple[int, str]] = {}
        self.best: list[_Best] = []

    def run(self) -> None:
        """Weigh every variant of every layout."""
        batch = self.question.global_batch
        for cut in cuts(self.question):
            reasons = misfits(self.question.shape, cut)
            if batch % cut.dp:
                reasons.append(
                    f"batch: got {batch}, expected a multiple of dp {cut.dp}"
                )
            if reasons:
                self._drop("cannot be cut", reasons[0])
            elif cut.cp > 1 and cut.sequence // cut.cp < MIN_CONTEXT:
                self._drop(
                    "context cut too short",
                    f"cp {cut.cp} leaves {cut.sequence // cut.cp} tokens a rank, too "
                    f"few for kernels to reach the efficiency assumed ({MIN_CONTEXT})",
                )
            else:
                self.best += self._weigh(cut)

    def _drop(self, why: str, example: str) -> None:
        count, first = self.dropped.get(why, (0, example))
        self.dropped[why] = count + 1, first

    def _stages(self, cut: Layout) -> list[Layout]:
        """Return a cut with each ZeRO stage that can be."""
        stages = (0, 1, 2, 3) if cut.replicas > 1 else (0,)
        found = [replace(cut, zero=zero) for zero in stages if zero < 2 or cut.pp == 1]
        for zero in stages[len(found) :]:
            self._drop(
                "ZeRO 2 or 3 under a pipeline",
                f"pp {cut.pp} with ZeRO {zero}: every microbatch would sum gradients "
                "into shards anew; DeepSpeed's pipeline refuses both stages",
            )
        return found

    def _weigh(self, cut: Layout) -> list[_Best]:
        """Return the best variant of a cut under each ZeRO stage."""
        question, usable = self.question, self.question.usable_bytes
        stages = self._stages(cut)
        held = [self._states(stage) for stage in stages]
        once = [self._once(stage) for stage in stages]
        best = [_Best(stage) for stage in stages]
        for micro_batch, microbatches, chunks in variants(question, cut):
            for recompute in self.recomputes:
                base = replace(
                    cut,
                    micro_batch=micro_batch,
                    microbatches=microbatches,
                    recompute=recompute,
                )
                pieces = self._pieces(base)
                seconds: _Seconds | None = None
                for v in chunks:
                    schedule = "interleaved" if v > 1 else "1f1b"
                    work = [
                        piece.held(schedule, cut.pp, microbatches, v)
                        + piece.recomputed
                        + piece.logits
                        for piece in pieces
                    ]
                    self.examined += len(stages)
                    for at, one in enumerate(best):
                        bytes_held = max(map(add, held[at], work))
                        if bytes_held < one.least_bytes:
                            one.least_bytes, one.least = bytes_held, (base, v)
                        if bytes_held > usable:
                            continue
                        # Made only for what fits: most of the work is here.
                        seconds = seconds or self._seconds(base)
                        first, more = once[at]
                        sums = first + more * (microbatches - 1)
                        total = self._total(base, v, seconds, sums)
                        if total < one.seconds:
                            one.seconds, one.fastest = total, (base, v)
        return best

    def _pieces(self, base: Layout) -> list[ActivationPieces]:
        question = self.question
        return [
            activation_pieces(
                question.shape, base, rank, vocab_multiple=question.vocab_multiple
            )
            for rank in telling_ranks(question.shape, base.pp)
        ]

    def _states(self, stage: Layout) -> list[Number]:
        """Return what each telling rank holds, whatever the microbatch."""
        shape, multiple = self.question.shape, self.question.vocab_multiple
        found = []
        for rank in telling_ranks(shape, stage.pp):
            weights, gradients, optimizer, _ = state_bytes(
                shape, stage, self.kept, rank, vocab_multiple=multiple
            )
            gathered = gathered_bytes(shape, stage, self.kept, rank)
            found.append(weights + gradients + optimizer + gathered)
        return found

    def _once(self, stage: Layout) -> tuple[float, float]:
        """Return the time of data parallelism: with one microbatch, and for each more.

        Stage 2 sums again for each microbatch, stage 3 gathers again too.
        """
        question = self.question
        one, two = (
            sum(
                axis_seconds(
                    dp_step_traffic(
                        question.shape,
                        replace(stage, microbatches=microbatches),
                        self.kept,
                        vocab_multiple=question.vocab_multiple,
                    ),
                    stage,
                    question.cluster,
                    question.assumptions.link_efficiency,
                ).values()
            )
            for microbatches in (1, 2)
        )
        return one, two - one

    def _seconds(self, base: Layout) -> _Seconds:
        """Return the times of one microbatch; all of them grow with their number."""
        question, cluster = self.question, self.question.cluster
        efficiency, distance = question.assumptions.link_efficiency, strides(base)
        times = dict.fromkeys(("tp", "ep", "send", "pp", "cp"), 0.0)
        for traffic in model_step_traffic(
            question.shape,
            replace(base, microbatches=1),
            self.kept,
            vocab_multiple=question.vocab_multiple,
        ):
            key = "send" if traffic.operation == "send-recv" else traffic.axis
            stride = distance[traffic.axis]
            times[key] += group_seconds(cluster, traffic, stride, efficiency)
        return _Seconds(
            microbatch=microbatch_seconds(
                question.shape, base, cluster, question.assumptions
            ),
            blocking=times["tp"] + times["ep"],
            send=times["send"],
            tie=times["pp"],
            context=times["cp"],
        )

    def _total(self, base: Layout, v: int, seconds: _Seconds, once: float) -> float:
        m = base.microbatches
        blocking = seconds.blocking + seconds.send * v + seconds.tie / m
        compute, bubble, exposed, context = compose(
            microbatch_s=seconds.microbatch,
            per_microbatch_s=blocking,
            once_s=once,
            context_s=seconds.context * m,
            microbatches=m,
            stages=base.pp,
            virtual_stages=v,
            weight_share=0.0,
            overlap=self.question.assumptions.overlap,
        )
        return compute + bubble + exposed + context + blocking * m


# --- 3. the answer --------------------------------------------------------------------


def plan(question: Question, *, top: int = 5) -> Plan:
    """Return the layouts that fit, fastest first, and what became of the others.

    Raises:
        EstimateError: a question that no cluster can be asked.
    """
    _check(question)
    search = _Search(question)
    search.run()
    fitting = [best for best in search.best if best.fastest is not None]
    # Of two that are as fast, the one that needs less of everything.
    fitting.sort(key=lambda best: (round(best.seconds, 9), best.least_bytes))
    ranked = tuple(
        rank_layout(question, best.layout)
        for best in fitting[:top]
        if best.layout is not None
    )
    return Plan(
        question=question,
        ranked=ranked,
        rejected=tuple(_rejected(question, search, fitting[top:], ranked)),
        examined=search.examined,
        fitting=len(fitting),
        memory_reason=_memory_reason(question),
        time_reason=_time_reason(question, ranked),
    )


def _check(question: Question) -> None:
    check_count("gpus", question.gpus, most=MAX_RANKS)
    check_count("global batch", question.global_batch)
    check_count("sequence", question.sequence)
    check_fraction("reserve", question.reserve)
    for name in ("tokens", "deadline_days"):
        value = getattr(question, name)
        if value is not None:
            check_amount(name, value)
    precision(question.convention)
    per_node = question.cluster.gpus_per_node
    if question.gpus > per_node and question.gpus % per_node:
        raise EstimateError(
            f"gpus: got {question.gpus}, expected whole nodes of {per_node} "
            f"({question.cluster.name})"
        )


def rank_layout(question: Question, layout: Layout) -> Ranked:
    """Return a layout with its memory, its time, and why it is as it is."""
    memory = most_loaded(
        question.shape,
        layout,
        precision(question.convention),
        vocab_multiple=question.vocab_multiple,
    )
    time = _time(question, layout)
    return Ranked(layout, memory, time, tuple(_reasons(question, layout, time)))


def _time(question: Question, layout: Layout) -> StepTime:
    return step_time(
        question.shape,
        layout,
        question.cluster,
        question.assumptions,
        convention=question.convention,
        vocab_multiple=question.vocab_multiple,
    )


def _reasons(question: Question, layout: Layout, time: StepTime) -> Iterator[str]:
    cluster, shares = question.cluster, time.exposed
    if layout.tp > 1:
        share = shares["tp"] / time.total
        if layout.tp <= cluster.gpus_per_node:
            yield (
                f"tp {layout.tp} stays inside the node: "
                f"{cluster.inside_bytes_per_s / 1e9:g} GB/s a GPU, {share:.1%} of the "
                "step"
            )
        else:
            yield f"tp {layout.tp} crosses nodes: {share:.1%} of the step"
    if layout.pp > 1:
        chunks = f", {layout.virtual_stages} chunks" * (layout.virtual_stages > 1)
        yield (
            f"pp {layout.pp} over {layout.microbatches} microbatches{chunks}: bubble "
            f"{time.bubble_share:.1%}; messages {shares['pp'] / time.total:.1%}"
        )
    if layout.cp > 1:
        yield f"cp {layout.cp}: {shares['cp'] / time.total:.1%} of the step shows"
    if layout.ep > 1:
        yield f"ep {layout.ep}: {shares['ep'] / time.total:.1%} of the step"
    if layout.replicas > 1:
        sharded = ("nothing", "the optimizer", "optimizer and gradients", "all states")
        group = ranks_in_node(cluster, layout.replicas, layout.tp)
        where = (
            "inside a node"
            if group == layout.replicas
            else f"{group} of them in a node"
        )
        yield (
            f"{layout.replicas} replicas, {where}, shard {sharded[layout.zero]}: "
            f"{shares['dp'] / time.total:.1%} of the step shows"
        )
    if layout.recompute == "full":
        yield "full recompute: a third more compute, because activations do not fit"


def loss(layout: Layout, time: StepTime) -> tuple[str, float]:
    """Return what costs a layout most beside its own compute, and its share."""
    parts = {f"communication of {axis}": took for axis, took in time.exposed.items()}
    parts["bubble"] = time.bubble
    if layout.recompute == "full":
        parts["recompute"] = time.compute / 4
    cause = max(parts, key=lambda name: parts[name])
    return cause, parts[cause] / time.total


def name_layout(layout: Layout) -> str:
    """Return a layout in one line: what is larger than one, and the ZeRO stage."""
    axes = (("dp", layout.dp), ("tp", layout.tp), ("pp", layout.pp))
    more = (("cp", layout.cp), ("ep", layout.ep))
    words = [f"{axis} {size}" for axis, size in axes]
    words += [f"{axis} {size}" for axis, size in more if size > 1]
    return ", ".join([*words, f"ZeRO {layout.zero}"])


def _rejected(
    question: Question,
    search: _Search,
    fitting: list[_Best],
    ranked: tuple[Ranked, ...],
) -> Iterator[Rejected]:
    misfit = [best for best in search.best if best.fastest is None]
    if misfit:
        nearest = min(misfit, key=lambda best: best.least_bytes)
        assert nearest.leanest is not None
        yield Rejected(
            "does not fit",
            len(misfit),
            f"nearest: {name_layout(nearest.leanest)} needs "
            f"{nearest.least_bytes / 1e9:.1f} GB of {question.usable_bytes / 1e9:.1f}",
        )
    yield from _slower(fitting, question, ranked)
    for why, (count, example) in search.dropped.items():
        yield Rejected(why, count, f"such as: {example}")


def _slower(
    fitting: list[_Best], question: Question, ranked: tuple[Ranked, ...]
) -> Iterator[Rejected]:
    """Yield the layouts that fit and are not shown, by what costs them most."""
    causes: dict[str, list[tuple[float, Layout, float]]] = {}
    for best in fitting:
        assert best.layout is not None
        time = _time(question, best.layout)
        cause, share = loss(best.layout, time)
        causes.setdefault(cause, []).append((time.total, best.layout, share))
    for cause, group in sorted(causes.items(), key=lambda pair: -len(pair[1])):
        seconds, slowest, share = max(group, key=lambda each: each[0])
        yield Rejected(
            f"slower: {cause}",
            len(group),
            f"at worst: {name_layout(slowest)}, {seconds / ranked[0].time.total:.1f} "
            f"times the best, {share:.0%} of its step is {cause}",
        )


def _memory_reason(question: Question) -> str:
    params = parameter_count(question.shape)
    kept = precision(question.convention)
    states = kept.total * params
    usable = question.usable_bytes
    text = (
        f"{kept.total} B × {params / 1e9:.2f} B parameters = {states / 1e9:,.1f} GB of "
        f"weights, gradients and optimizer; one GPU offers {usable / 1e9:.1f} GB"
    )
    if states <= usable:
        return f"fits one GPU, before activations: {text}"
    return f"does not fit: {text}, so {ceil(states / usable)} GPUs at the least"


def _time_reason(question: Question, ranked: tuple[Ranked, ...]) -> str:
    if not ranked:
        return "no time: nothing fits"
    best = ranked[0].time
    alone = best.total * question.gpus
    if question.tokens is None:
        return (
            f"a step of {question.step_tokens:,} tokens takes {best.total:.2f} s on "
            f"{question.gpus} GPUs, {alone:,.0f} s on one of the same efficiency; "
            "whether that is too slow depends on --tokens and --days"
        )
    steps = question.tokens / question.step_tokens
    days, alone_days = (seconds * steps / 86_400 for seconds in (best.total, alone))
    text = (
        f"{question.tokens:.3g} tokens take {alone_days:,.0f} days on one GPU of the "
        f"same efficiency, {days:,.1f} on {question.gpus}"
    )
    if question.deadline_days is None:
        return text
    deadline = question.deadline_days
    if alone_days <= deadline:
        return f"not too slow on one: {text}, and {deadline:g} are given"
    enough = "" if days <= deadline else f": needs {ceil(alone_days / deadline)} GPUs"
    verdict = "too slow on one" if days <= deadline else "too slow even so"
    return f"{verdict}: {text}, and {deadline:g} are given{enough}"
