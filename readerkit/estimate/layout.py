"""A layout: how ranks, batch and layers are cut; and whether it can be cut so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any, NamedTuple

from mini_impls.zero_bubble_orders import ORDERS
from readerkit.errors import EstimateError
from readerkit.estimate.activations import MODULES, RECOMPUTE
from readerkit.estimate.checks import MAX_COUNT, MAX_RANKS, check_choice, check_count
from readerkit.estimate.pipeline import (
    CHUNKED,
    STAGES_OF_RANK,
    Pipeline,
    check_schedule,
)
from readerkit.estimate.quantity import Number, divide, named_sizes
from readerkit.estimate.shape import Shape
from readerkit.estimate.sizes import LAYOUT
from readerkit.estimate.states import OFFLOAD, STAGES
from readerkit.estimate.zero_bubble import check_sizes

CP_KINDS = ("ring", "all-gather", "ulysses")
"""Blocks handed on, blocks gathered at once, or heads for tokens."""
_MAY_BE_NONE = ("zero", "first_layers", "last_layers", "etp", "recompute_layers")
_GROUPS = ("dp", "tp", "pp", "cp", "ep", "etp", "virtual_stages")


class Layout(NamedTuple):
    """Sizes of the parallel groups and of one step; ``Layout.parse`` checks them."""

    dp: int = 1
    """Data parallel, without the context-parallel ranks."""
    tp: int = 1
    pp: int = 1
    cp: int = 1
    """Context parallel: each rank holds 1/cp of every sequence."""
    ep: int = 1
    """Expert parallel, taken out of dp × cp (and of tp, where etp is less)."""
    etp: int = 0
    """Tensor-parallel ranks of an expert; 0: tp."""
    zero: int = 1
    """ZeRO stage over dp × cp: 0 DDP, 1 optimizer, 2 and gradients, 3 and weights."""
    sequence_parallel: bool = True
    recompute: str = "selective"
    """One of ``RECOMPUTE``, or Megatron's modules with commas between."""
    recompute_layers: int = 0
    """Under full recompute, how many layers of a rank; 0: all."""
    micro_batch: int = 1
    """Sequences in one microbatch."""
    microbatches: int = 1
    """Microbatches of one rank in one step."""
    virtual_stages: int = 1
    schedule: str = "1f1b"
    sequence: int = 4096
    first_layers: int = 0
    """Layers of the first pipeline rank, and the last; 0: as the others have."""
    last_layers: int = 0
    offload: str = "none"
    """What is kept off the GPU, and where: see ``OFFLOAD``."""
    flash: bool = False
    """Attention that never writes its scores to memory."""
    cp_kind: str = "ring"
    """How context parallelism shares keys and values: see ``CP_KINDS``."""

    @classmethod
    def parse(cls, values: Mapping[str, Any], *, gpus: int | None = None) -> Layout:
        """Return a layout whose sizes are numbers that make sense together.

        Raises:
            EstimateError: an unknown name, a wrong value, or a product that is not
                the number of GPUs.
        """
        usual = cls._field_defaults
        given = {name: value for name, value in values.items() if value is not None}
        for name, value in given.items():
            check_choice("size of a layout", name, usual)
            if type(usual[name]) is int:
                given[name] = check_count(
                    name,
                    value,
                    least=0 if name in _MAY_BE_NONE else 1,
                    most=MAX_RANKS if name in _GROUPS else MAX_COUNT,
                )
        layout = cls(**given)
        check_choice("ZeRO stage", str(layout.zero), map(str, STAGES))
        _check_recompute(layout)
        check_schedule(layout.schedule)
        check_choice("cp-kind", layout.cp_kind, CP_KINDS)
        check_choice("offload", layout.offload, OFFLOAD)
        least = OFFLOAD[layout.offload].stage
        if layout.zero < least:
            raise EstimateError(
                f"zero: got {layout.zero} with --offload {layout.offload}, expected "
                f"{least} or more (what it takes is sharded from there on)"
            )
        if gpus is not None and layout.world_size != check_count("gpus", gpus):
            raise EstimateError(
                f"dp × tp × pp × cp: got {layout.dp} × {layout.tp} × {layout.pp} × "
                f"{layout.cp} = {layout.world_size}, expected {gpus} (GPUs)"
            )
        return layout

    def named(self) -> Layout:
        """Return the same layout with sizes that know their names.

        What is not cut, or there once, stays 1 and is in no formula.
        """
        return self._replace(**named_sizes(self, LAYOUT))

    @property
    def world_size(self) -> int:
        """Ranks of the whole job."""
        return prod((self.dp, self.tp, self.pp, self.cp))

    @property
    def replicas(self) -> int:
        """Ranks that hold the same weights, over which ZeRO shards: dp × cp.

        Under DualPipe twice as many: a stage is on two ranks of the pipeline.
        """
        return self.dp * self.cp * self.stages_of_rank

    @property
    def expert_replicas(self) -> Number:
        """Ranks that hold the same experts."""
        if not self.etp:
            return divide(self.replicas, self.ep)
        return divide(self.replicas * self.tp, self.etp * self.ep)

    @property
    def expert_ranks(self) -> int:
        """Ranks over which experts are cut."""
        return (self.etp or self.tp) * self.ep

    @property
    def folds_experts(self) -> bool:
        """Whether experts have tensor-parallel ranks of their own."""
        return self.etp not in (0, self.tp)

    @property
    def rank_sequence(self) -> Number:
        """Tokens of a sequence that one rank works on."""
        return divide(self.sequence, self.cp)

    @property
    def sequence_shard(self) -> int:
        """Ranks over which norms and their like are cut."""
        return self.tp if self.shards_sequence else 1

    @property
    def pipeline(self) -> Pipeline:
        """Its pipeline, whose steps take one unit of time each."""
        return Pipeline(self.schedule, self.pp, self.microbatches, self.virtual_stages)

    @property
    def stages_of_rank(self) -> int:
        """Stages on a rank that a microbatch meets one of: 2 under DualPipe."""
        return STAGES_OF_RANK.get(self.schedule, 1)

    def ends(self, rank: int) -> tuple[bool, bool]:
        """Return whether a pipeline rank has the model's embedding, and its output."""
        first, last = rank == 0, rank == self.pp - 1
        if self.schedule == "zb-v":
            return first, first
        return (first or last,) * 2 if self.schedule == "dualpipe" else (first, last)

    @property
    def global_batch(self) -> int:
        """Sequences of one step."""
        return self.dp * self.micro_batch * self.microbatches

    @property
    def shards_sequence(self) -> bool:
        """Whether sequence parallelism has ranks to shard over."""
        return self.sequence_parallel and self.tp > 1


def _check_recompute(layout: Layout) -> None:
    """Refuse words that Megatron does not know, and layers of no full recompute."""
    alone = () if "," in layout.recompute else RECOMPUTE
    for module in layout.recompute.split(","):
        check_choice("recompute", module, (*alone, *MODULES))
    if layout.recompute_layers and layout.recompute != "full":
        raise EstimateError(
            f"recompute_layers: got {layout.recompute_layers} with "
            f"{layout.recompute} recompute, expected 0 (it is of full recompute)"
        )


def stage_layers(
    layers: int, pp: int, virtual_stages: int = 1, first: int = 0, last: int = 0
) -> list[int]:
    """Return how many layers each pipeline rank holds.

    Where they do not divide evenly, the first and the last rank may hold one fewer,
    because they hold the embedding and the output (Llama 3: 126 layers on 16 ranks).
    What the first or the last holds can be given, as to Megatron
    (``--decoder-first-pipeline-num-layers``); the others divide the rest.

    Raises:
        EstimateError: neither comes out even.
    """
    if first or last:
        return _with_ends(layers, pp, virtual_stages, first, last)
    stages = pp * virtual_stages
    if layers % stages == 0:
        return [layers // pp] * pp
    even = (layers + 2) // pp
    if pp > 1 and (layers + 2) % stages == 0 and even > 1:
        return [even - 1, *[even] * (pp - 2), even - 1]
    parts = f"pp {pp}" + (f" × {virtual_stages} chunks" if virtual_stages > 1 else "")
    raise EstimateError(
        f"layers: got {layers} for {parts}, expected a multiple of {stages} (or two "
        "fewer: one less on the first and last rank)"
    )


def _with_ends(layers: int, pp: int, v: int, first: int, last: int) -> list[int]:
    """Return the layers of each rank where the first or the last has its own."""
    ends = [each for each in (first, last) if each]
    between, rest = pp - len(ends), layers - sum(ends)
    each = rest // between if between > 0 else 0
    if rest != each * between or rest < between or any(n % v for n in (*ends, each)):
        raise EstimateError(
            f"layers: got {layers} with {first or 'no'} on the first rank and "
            f"{last or 'no'} on the last, expected a rest that divides over "
            f"{between} ranks" + f" of {v} chunks" * (v > 1)
        )
    return [first or each, *[each] * (pp - 2), last or each]


def misfits(shape: Shape, layout: Layout) -> list[str]:
    """Return every reason why a model cannot be cut like this; none: it can."""
    found: list[str] = []
    tp, cp, ep, p, m = (layout.tp, layout.cp, layout.ep, layout.pp, layout.microbatches)
    if shape.heads % tp:
        found.append(f"tp: got {tp}, expected a divisor of {shape.heads} (heads)")
    if shape.kv_heads % tp and tp % shape.kv_heads:
        found.append(
            f"tp: got {tp}, expected a divisor or a multiple of {shape.kv_heads} "
            "(key-value heads)"
        )
    inner = {"ffn": shape.ffn} if shape.moe_layers < shape.layers else {}
    if shape.experts:
        experts = shape.expert_ffn, layout.etp or tp
        if experts[0] % experts[1]:
            found.append(
                f"{'etp' if layout.etp else 'tp'}: got {experts[1]}, expected a "
                f"divisor of {experts[0]} (expert_ffn)"
            )
    if shape.shared_ffn:
        inner["shared_ffn"] = shape.shared_ffn
    found += [
        f"tp: got {tp}, expected a divisor of {size} ({name})"
        for name, size in inner.items()
        if size % tp
    ]
    if layout.sequence % cp:
        found.append(
            f"cp: got {cp}, expected a divisor of the sequence {layout.sequence}"
        )
    elif layout.shards_sequence and layout.sequence // cp % tp:
        found.append(
            f"tp: got {tp}, expected a divisor of the rank's sequence "
            f"{layout.sequence // cp} (sequence parallel)"
        )
    if layout.cp_kind == "ulysses" and cp > 1:
        found += [
            f"cp: got {cp} × tp {tp}, expected a divisor of {heads} ({of}; ulysses)"
            for heads, of in ((shape.heads, "heads"), (shape.kv_heads, "key heads"))
            if heads % (cp * tp)
        ]
    if ep > 1 and not shape.experts:
        found.append(f"ep: got {ep}, expected 1 (a dense model has no experts)")
    elif ep > 1 and shape.experts % ep:
        found.append(f"ep: got {ep}, expected a divisor of {shape.experts} (experts)")
    modules = layout.recompute.split(",")
    if "mla_up_proj" in modules and not shape.kv_rank:
        found.append("recompute: got mla_up_proj, expected a model with latents")
    if not shape.experts and {"moe", "moe_act", "shared_experts"}.intersection(modules):
        found.append(f"recompute: got {layout.recompute}, expected no experts' modules")
    if layout.folds_experts and tp > 1 and not layout.sequence_parallel:
        found.append(
            f"etp: got {layout.etp} beside tp {tp}, expected sequence parallelism: "
            "experts take tokens from ranks that each have their own"
        )
    if layout.etp and not shape.experts:
        found.append(f"etp: got {layout.etp}, expected none (no experts)")
    elif layout.etp and layout.dp * cp * tp % layout.expert_ranks:
        found.append(
            f"ep: got {ep} with etp {layout.etp}, expected a divisor of dp × cp × tp "
            f"{layout.dp * cp * tp} together"
        )
    elif not layout.etp and layout.dp * cp % ep:
        found.append(f"ep: got {ep}, expected a divisor of dp × cp {layout.dp * cp}")
    found += _stage_misfits(shape, layout)
    if layout.schedule not in ("1f1b", "interleaved") and p == 1:
        found.append(f"schedule: got {layout.schedule}, expected pp above 1")
    elif layout.schedule in ORDERS:
        try:
            check_sizes(layout.schedule, p, m)
        except EstimateError as error:
            found.append(str(error))
    if layout.schedule in CHUNKED:
        if p == 1 or layout.virtual_stages == 1:
            found.append(
                f"schedule: got {layout.schedule}, expected pp and virtual_stages "
                "above 1"
            )
        elif m % p:
            found.append(f"microbatches: got {m}, expected a multiple of pp {p}")
    elif layout.virtual_stages > 1:
        found.append(
            f"virtual_stages: got {layout.virtual_stages}, expected 1 "
            f"({' and '.join(CHUNKED)} have several)"
        )
    return found


def check_fit(shape: Shape, layout: Layout) -> None:
    """Raise where a model cannot be cut like this.

    Raises:
        EstimateError: with every reason.
    """
    found = misfits(shape, layout)
    if found:
        raise EstimateError("\n".join(found))


def _stage_misfits(shape: Shape, layout: Layout) -> Iterator[str]:
    """Yield what keeps the layers from their stages."""
    p, twice, again = layout.pp, layout.schedule == "zb-v", layout.recompute_layers
    given = f"got {layout.first_layers}, {layout.last_layers}, expected"
    is_uneven = layout.first_layers or layout.last_layers
    if is_uneven and p == 1:
        yield f"first_layers, last_layers: {given} none of one stage"
        return
    try:
        counts = stage_layers(
            *(shape.layers, 2 * p if twice else p, layout.virtual_stages),
            *(layout.first_layers, layout.last_layers),
        )
    except EstimateError as error:
        yield "zb-v has two stages a rank: " * twice + str(error)
    else:
        if again * layout.virtual_stages > max(counts):
            most = max(counts) // layout.virtual_stages
            yield f"recompute_layers: got {again}, expected at most {most} (of a chunk)"
    if is_uneven and all(layout.ends(0)):
        yield (
            f"first_layers, last_layers: {given} none under {layout.schedule}, "
            "whose first rank has both ends"
        )
