"""What a training run is: frozen dataclasses, and `recipe`, the one dial from which all of them follow.

Invariants: a configuration is plain numbers and words; `flat` gives it as canonical JSON (decimals as strings), which
is what a checkpoint stores and what a resume compares field by field. Every field reaches the bits of the result.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args, get_type_hints

from curate.configuration import ConfigurationError

Shape = Literal["wsd", "cosine", "linear"]
"""What the learning rate does after its warmup: stay and then decay linearly, follow half a cosine, decay linearly."""

Rule = Literal["adamw", "muon"]
"""How the matrices of layers are updated; embedding, head, routers and gains always are by AdamW."""

Compute = Literal["float32", "bfloat16"]
"""The type of products in the model; parameters, norms, softmax, logits, sums and gradients of shards are float32."""

Reduction = Literal["psum", "strict"]
"""How sums of shards are added up: in the order that the devices find best, or in one tree for any number of them."""

QueryKeyNorm = Literal["head"]
"""Queries and keys are normalised within each head, with a gain that all heads of a layer share."""

Head = Literal["tied", "own"]
"""Whether logits are made with the embedding matrix (transposed) or with a matrix of their own."""


Gate = Literal["sigmoid", "softmax"]
"""How a router's logits become scores: each apart (DeepSeek-V3) or against each other (Mixtral)."""

Balance = Literal["none", "sign", "quantile"]
"""How the load of experts is kept even; see `trainers.balance`."""

BIAS_RATE: Final[Mapping[Balance, float]] = {"none": 0.0, "sign": 0.01, "quantile": 0.5}


@dataclass(frozen=True, slots=True)
class ExpertsConfig:
    """Experts instead of one feed-forward: of `count`, each token goes to the `chosen` with the best scores.

    An expert is a SwiGLU of `ModelConfig.hidden`; `shared` is the inner axis of one more that sees every token (0:
    none). `capacity` is the most that an expert takes, in multiples of its fair share of a shard's tokens; None takes
    all (dropless). `rate` is how fast the balance acts, None: that of `BIAS_RATE`. Weights of the chosen add up to 1.
    """

    count: int
    chosen: int
    shared: int = 0
    gate: Gate = "sigmoid"
    balance: Balance = "quantile"
    rate: float | None = None
    capacity: float | None = None

    def __post_init__(self) -> None:
        """Check the ranges.

        Raises:
            ConfigurationError: a value is outside of its range.
        """
        _require(
            2 <= self.chosen < self.count,
            f"{self.chosen} of {self.count} experts chosen: at least 2 (the weight of a single one is 1 whatever its "
            "score, so its router would learn nothing) and fewer than all",
        )
        _require(self.shared >= 0, f"shared is the inner axis of the shared expert, not negative, got {self.shared}")
        _require(self.gate in ("sigmoid", "softmax"), f'gate must be "sigmoid" or "softmax", got {self.gate!r}')
        _require(self.balance in BIAS_RATE, f"balance must be one of {', '.join(BIAS_RATE)}, got {self.balance!r}")
        _require(self.rate is None or self.rate > 0, f"rate must be positive, got {self.rate}")
        _require(self.capacity is None or self.capacity >= 1, f"capacity is at least 1 fair share, got {self.capacity}")

    @property
    def bias_rate(self) -> float:
        """The rate, given or that of the balance."""
        return BIAS_RATE[self.balance] if self.rate is None else self.rate


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """A Llama-like model: RMSNorm, rotary positions, grouped-query attention, SwiGLU or experts.

    `width` is the embedding axis, `hidden` the inner axis of the feed-forward (of each expert), `heads` the query
    heads, of which heads / kv_heads share a key and value head. A head is width / heads wide. `qk_norm` "head"
    normalises queries and keys within each head. With `vocabulary_chunk` the loss is computed over so many words of
    the vocabulary at a time, so that the logits of a batch are never held; the value is the same up to rounding.
    """

    vocabulary: int
    width: int
    layers: int
    heads: int
    kv_heads: int
    hidden: int
    head: Head = "tied"
    rope_base: float = 10_000.0
    norm_epsilon: float = 1e-5
    qk_norm: QueryKeyNorm | None = None
    experts: ExpertsConfig | None = None
    vocabulary_chunk: int | None = None

    def __post_init__(self) -> None:
        """Check that the axes fit each other.

        Raises:
            ConfigurationError: they do not.
        """
        for name in ("vocabulary", "width", "layers", "heads", "kv_heads", "hidden"):
            _require(getattr(self, name) >= 1, f"{name} must be at least 1, got {getattr(self, name)}")
        _require(self.width % (2 * self.heads) == 0, f"width {self.width} is not a multiple of 2 × {self.heads} heads")
        _require(self.heads % self.kv_heads == 0, f"{self.heads} heads cannot share {self.kv_heads} kv_heads evenly")
        _require(self.head in ("tied", "own"), f'head must be "tied" or "own", got {self.head!r}')
        _require(self.qk_norm in (None, "head"), f'qk_norm must be "head" or None, got {self.qk_norm!r}')
        _require(
            self.vocabulary_chunk is None or self.vocabulary_chunk >= 1,
            f"vocabulary_chunk must be at least 1, got {self.vocabulary_chunk}",
        )

    @property
    def head_width(self) -> int:
        """The width of one attention head."""
        return self.width // self.heads

    @property
    def matrix_parameters(self) -> int:
        """Parameters of the matrices in all layers: without embedding, own head and the gains of norms."""
        return self._matrix_parameters(1 if self.experts is None else self.experts.count)

    @property
    def active_parameters(self) -> int:
        """Those of them that a token meets: of the experts only the chosen."""
        return self._matrix_parameters(1 if self.experts is None else self.experts.chosen)

    def _matrix_parameters(self, experts: int) -> int:
        attention = 2 * self.width * self.head_width * (self.heads + self.kv_heads)
        beside = 0 if self.experts is None else self.experts.count + 3 * self.experts.shared  # router, shared expert
        return self.layers * (attention + self.width * (experts * 3 * self.hidden + beside))


@dataclass(frozen=True, slots=True)
class OptimizerConfig:
    """AdamW with decoupled weight decay (Loshchilov and Hutter, ICLR 2019) after clipping by the global norm.

    The rate at update s of `Config.steps` is `learning_rate` times min(1, (s + 1) / warmup) times the shape: "wsd" is
    1 until the last `decay` updates and falls linearly to `floor` over them; "linear" and "cosine" fall to `floor`
    over all updates after the warmup (and take no `decay`).

    `matrices="muon"` updates the matrices of layers by Muon (Jordan 2024): momentum `momentum` with Nesterov's look
    ahead, made orthogonal by five Newton-Schulz steps, times 0.2 √(longer side), which gives it the root mean square of
    an AdamW update, so that rate and weight decay serve both (Liu et al., "Muon is scalable", 2025, §2.2).
    """

    learning_rate: float
    warmup: int
    decay: int = 0
    shape: Shape = "wsd"
    floor: float = 0.0
    weight_decay: float = 0.1
    beta1: float = 0.9
    beta2: float = 0.95
    epsilon: float = 1e-8
    clip: float = 1.0
    matrices: Rule = "adamw"
    momentum: float = 0.95

    def __post_init__(self) -> None:
        """Check the ranges.

        Raises:
            ConfigurationError: a value is outside of its range.
        """
        _require(self.learning_rate > 0, f"learning_rate must be positive, got {self.learning_rate}")
        _require(self.shape in ("wsd", "cosine", "linear"), f"shape must be wsd, cosine or linear, got {self.shape!r}")
        _require(self.warmup >= 0 and self.decay >= 0, f"warmup {self.warmup}, decay {self.decay}: not negative")
        _require(self.shape == "wsd" or self.decay == 0, f'decay belongs to "wsd", the shape is {self.shape!r}')
        _require(0 <= self.floor <= 1, f"floor is a fraction of the rate from 0 to 1, got {self.floor}")
        _require(self.clip > 0, f"clip must be positive, got {self.clip}")
        _require(self.matrices in ("adamw", "muon"), f'matrices must be "adamw" or "muon", got {self.matrices!r}')
        _require(0 <= self.momentum < 1, f"momentum is a fraction from 0 to below 1, got {self.momentum}")


@dataclass(frozen=True, slots=True)
class Config:
    """A training run: `steps` updates, each on `batch` sequences of `length` tokens.

    Where the phases of a plan have a batch or length of their own, an update has a multiple of `batch` sequences, cut
    to rows whose length divides `length`: the two are what the plan's steps have.

    `z_loss` weighs the squared log-normaliser of the logits (PaLM, Chowdhery et al. 2022, §5; 1e-4 as there). `seed`
    names the initial parameters and nothing else: the order of the data belongs to the plan. `ema` is how much of the
    running average of the parameters stays in each update (0: none is kept), see `trainers.step`.

    A batch is cut into `shards` equal parts, which a device computes one after the other: gradient accumulation. With
    `reduction="strict"` their sums are added in one binary tree, whatever devices they were computed on; see
    `trainers.reduction`. Devices are not part of a run: a `Mesh` is given beside it.
    """

    model: ModelConfig
    optimizer: OptimizerConfig
    steps: int
    batch: int
    length: int
    z_loss: float = 1e-4
    seed: int = 0
    compute: Compute = "float32"
    shards: int = 1
    reduction: Reduction = "psum"
    ema: float = 0.0

    def __post_init__(self) -> None:
        """Check that the schedule fits into the steps.

        Raises:
            ConfigurationError: it does not, or a number is out of range.
        """
        _require(self.steps >= 1 and self.batch >= 1, f"steps {self.steps}, batch {self.batch}: at least 1")
        _require(self.length >= 2, f"a sequence has at least 2 tokens, got length {self.length}")
        planned = self.optimizer.warmup + self.optimizer.decay
        _require(planned <= self.steps, f"warmup and decay take {planned} of {self.steps} steps")
        _require(self.z_loss >= 0, f"z_loss must not be negative, got {self.z_loss}")
        _require(0 <= self.seed < 1 << 32, f"seed is a number from 0 to 2^32 - 1, got {self.seed}")
        self._check_parallel()

    def _check_parallel(self) -> None:
        _require(self.compute in ("float32", "bfloat16"), f"compute must be float32 or bfloat16, got {self.compute!r}")
        _require(self.reduction in ("psum", "strict"), f'reduction must be "psum" or "strict", got {self.reduction!r}')
        _require(self.shards >= 1, f"shards must be at least 1, got {self.shards}")
        _require(self.batch % self.shards == 0, f"a batch of {self.batch} cannot be cut into {self.shards} shards")
        tree = self.reduction == "psum" or self.shards & (self.shards - 1) == 0
        _require(tree, f"strict shards are a power of two, got {self.shards}")
        _require(0 <= self.ema < 1, f"ema is a fraction from 0 to below 1, got {self.ema}")


DEFAULT_LENGTH: Final = 256
LARGEST_RATE: Final = 0.003
PARAMETERS_64: Final = 147_456
"""Matrix parameters of width 64; smaller models bear a larger rate."""


def recipe(
    width: int,
    tokens: int,
    *,
    vocabulary: int,
    length: int = DEFAULT_LENGTH,
    batch: int | None = None,
    steps: int | None = None,
    seed: int = 0,
    matrices: Rule = "adamw",
) -> Config:
    """Return the configuration that follows from the model's `width` and the `tokens` that it sees.

    `vocabulary` and `length` (and `batch` and `steps`, if given) are facts of the tokenizer and the plan, not dials; a
    plan whose phases have batches of their own has as many `steps` as `updates`. With N matrix parameters and
    D = `tokens`:

        layers      = 2 + width / 64, rounded down
        heads       = 2 below width 64, width / 32 below 512, else width / 64; two share a key and value head, if even
        hidden      = 8/3 width, rounded up to a multiple of 32      (Shazeer, "GLU variants", 2020)
        head        = tied below width 1024, else own
        loss        = over 16,384 words of the vocabulary at a time where it has more than 65,536
        batch       = 0.58 D^0.571 tokens, rounded to a power of two of sequences
        rate        = 1.79 N^-0.713 D^0.307, at most 0.003           (both: Li et al., "Predictable scale", 2025)
                      and below width 64 at most 0.003 (147,456 / N)^0.713, which at width 64 is 0.003
        steps       = D / (batch · length), rounded down
        warmup      = steps / 20, decay = steps / 5, WSD to zero     (Hägele et al., 2024: 20 % suffice)

    The law was fitted on N ≥ 6e7, D ≥ 2e9. Far below that its rate is too high, hence the bound: at N = 1.5e5 and
    D = 3e5 it asks for 0.01. Held-out loss there was 5.47 at 0.01, 5.36 at 0.005, 5.14 at 0.003, 5.27 at 0.002, 5.77
    at 0.001 (one seed). Smaller models want more: with 512 words and 20 tokens a parameter width 16 lost 4.32 at 0.003,
    3.97 at 0.012, 3.93 at 0.024, 3.92 at 0.048, width 48 lost 3.05 at 0.003, 3.00 at 0.006, 3.03 at 0.012, and width 64
    (8 tokens) 2.80 at 0.003, 2.82 at 0.006; the law's exponent joins them. The rate is rounded to three digits, so that
    a mathematical library that differs in the last bit gives the same configuration. `matrices="muon"` keeps it: Muon's
    update has the root mean square of AdamW's (`OptimizerConfig`). What else is no matter of size is left at its
    default and changed with `dataclasses.replace`: bfloat16, strict sums, a running average, experts, the shape of the
    schedule.

    Raises:
        ConfigurationError: `width` is neither a positive multiple of 64 nor, below, of 8; or `tokens` are fewer than
            one batch.
    """
    fits = width > 0 and width % (8 if width < 64 else 64) == 0
    _require(fits, f"width is a positive multiple of 64, or of 8 below 64, got {width}")
    _require(tokens >= 2 * length, f"{tokens} tokens are fewer than two sequences of {length}")
    heads = 2 if width < 64 else width // 32 if width < 512 else width // 64
    model = ModelConfig(
        vocabulary=vocabulary,
        width=width,
        layers=2 + width // 64,
        heads=heads,
        kv_heads=heads // 2 if heads % 2 == 0 else heads,
        hidden=-(-8 * width // 96) * 32,
        head="tied" if width < 1024 else "own",
        vocabulary_chunk=16_384 if vocabulary > 65_536 else None,
    )
    rows = _power_of_two(0.58 * tokens**0.571 / length) if batch is None else batch
    steps = tokens // (rows * length) if steps is None else steps
    _require(steps >= 1, f"{tokens} tokens are fewer than one batch of {rows} × {length}")
    most = LARGEST_RATE * max(1.0, PARAMETERS_64 / model.matrix_parameters) ** 0.713
    rate = min(most, 1.79 * model.matrix_parameters**-0.713 * tokens**0.307)
    rate = float(f"{rate:.2e}")
    optimizer = OptimizerConfig(rate, warmup=steps // 20, decay=steps // 5, matrices=matrices)
    return Config(model=model, optimizer=optimizer, steps=steps, batch=rows, length=length, seed=seed)


def with_experts(model: ModelConfig, count: int, chosen: int) -> ModelConfig:
    """Return `model` with `count` experts instead of its feed-forward, of which each token goes to `chosen`.

    The chosen together are as wide as the feed-forward was, rounded up to a multiple of 8 each: a token meets about as
    many parameters as before, and the formulas of `recipe` go on to hold for these.

    Raises:
        ConfigurationError: not at least 2 and fewer than all are chosen.
    """
    experts = ExpertsConfig(count, chosen)
    return dataclasses.replace(model, hidden=-(-model.hidden // (8 * chosen)) * 8, experts=experts)


def flat(config: Any) -> dict[str, int | str]:
    """Return the fields of nested dataclasses under dotted names, decimals as their shortest exact strings.

    What is None is left out: a field that a later version adds, None by default, changes no earlier configuration.
    """
    result: dict[str, int | str] = {}
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if dataclasses.is_dataclass(value):
            result |= {f"{field.name}.{name}": item for name, item in flat(value).items()}
        else:
            result |= {} if value is None else {field.name: repr(value) if isinstance(value, float) else value}
    return result


def unflat(values: Mapping[str, object]) -> Config:
    """Return the configuration whose `flat` description is `values`.

    Raises:
        ConfigurationError: there is none.
    """
    try:
        found: Config = _built(Config, values)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"no configuration of this version: {error}") from None
    if other := differences(values, flat(found)):
        raise ConfigurationError(f"no configuration of this version: {'; '.join(other)}")
    return found


def _built(kind: Any, values: Mapping[str, object]) -> Any:
    given: dict[str, object] = {}
    for name, hint in get_type_hints(kind).items():
        kinds = (hint, *get_args(hint))
        nested = next((each for each in kinds if dataclasses.is_dataclass(each)), None)
        inner = {key.removeprefix(f"{name}."): value for key, value in values.items() if key.startswith(f"{name}.")}
        if nested is not None and inner:
            given[name] = _built(nested, inner)
        elif name in values:
            given[name] = float(str(values[name])) if float in kinds else values[name]
    return kind(**given)


def differences(stored: Mapping[str, object], given: Mapping[str, object]) -> list[str]:
    """Return one phrase for each field in which two flat descriptions differ, in order of their names."""
    return [
        f"{name}: stored {stored.get(name, 'nothing')}, given {given.get(name, 'nothing')}"
        for name in sorted({*stored, *given})
        if stored.get(name) != given.get(name)
    ]


def _power_of_two(value: float) -> int:
    """Return the power of two nearest to `value` by ratio, at least 1."""
    rows = 1
    while rows * rows * 2 < value * value:  # rows · √2 < value
        rows *= 2
    return rows


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise ConfigurationError(message)
