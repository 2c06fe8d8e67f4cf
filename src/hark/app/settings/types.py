"""The types of all settings in config.toml."""

from typing import Any, Literal

from msgspec import Struct, field

from hark.app.logs import LogSettings
from hark.app.slash.stop_words import STATUS_WORDS, STOP_WORDS
from hark.processes.sandbox import SandboxSettings
from hark.protocol.commands import Delivery
from hark.protocol.rules import AfterRestart, AfterStop, Approvals, ChildrenOnMessage, Limits, SessionRules, SteerBefore
from hark.providers.catalog import ModelFacts
from hark.schedules.settings import ScheduleSettings
from hark.surfaces.terminal.keys import Keys
from hark.surfaces.web.settings import ServeSettings
from hark.tools.skills.settings import SkillSettings
from hark.tools.web.settings import WebSettings
from hark.voice.settings import VoiceSettings


class RouteSettings(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`[[routes]]`: a named route to a model. Prices are in USD per million tokens and override the catalog's."""

    name: str = "main"
    provider: str = "openai"
    base_url: str = ""
    model: str = ""
    api_key_env: str = ""
    api_key: str = ""
    stream: bool = True
    first_byte_seconds: float | None = None
    idle_seconds: float | None = None
    max_concurrent: int | None = None
    input_price: float | None = None
    output_price: float | None = None
    cached_price: float | None = None
    context_tokens: int | None = None


class DeliverySettings(Struct, frozen=True, omit_defaults=True):
    """`[delivery]`: the effect of a message on a running turn, by default and on each surface."""

    default: Delivery = Delivery.INTERRUPT
    after_stop: AfterStop = AfterStop.HOLD
    after_restart: AfterRestart = AfterRestart.OFFER
    steer_before: SteerBefore = SteerBefore.STEP
    children: ChildrenOnMessage = ChildrenOnMessage.CONTINUE
    stop_words: tuple[str, ...] = STOP_WORDS
    status_words: tuple[str, ...] = STATUS_WORDS
    surfaces: dict[str, Delivery] = field(default_factory=dict[str, Delivery])


class StoreSettings(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`[store]`: where sessions are stored."""

    url: str = "sqlite"


class MemorySettings(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`[memory]`: whether to reflect on idle sessions, and how many characters of notes are in every prompt."""

    reflect: bool = False
    prompt_characters: int = 4_000


class TerminalSettings(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`[terminal]`: the key bindings and the theme of the terminal app."""

    keys: Keys = field(default_factory=Keys)
    theme: str = ""


class TelemetrySettings(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`[telemetry]`: whether to export turns to an OpenTelemetry collector, and whether to include their content."""

    traces: Literal["off", "otlp"] = "off"
    endpoint: str = ""
    content: bool = False


class Settings(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """All settings of config.toml, one field per section."""

    routes: tuple[RouteSettings, ...] = ()
    models: dict[str, ModelFacts] = field(default_factory=dict[str, ModelFacts])
    delivery: DeliverySettings = field(default_factory=DeliverySettings)
    limits: Limits = field(default_factory=Limits)
    approvals: Approvals = field(default_factory=Approvals)
    sessions: SessionRules = field(default_factory=SessionRules)
    store: StoreSettings = field(default_factory=StoreSettings)
    memory: MemorySettings = field(default_factory=MemorySettings)
    sandbox: SandboxSettings = field(default_factory=SandboxSettings)
    skills: SkillSettings = field(default_factory=SkillSettings)
    terminal: TerminalSettings = field(default_factory=TerminalSettings)
    web: WebSettings = field(default_factory=WebSettings)
    mcp: dict[str, Any] = field(default_factory=dict[str, Any])
    surfaces: dict[str, Any] = field(default_factory=dict[str, Any])
    voice: VoiceSettings = field(default_factory=VoiceSettings)
    serve: ServeSettings = field(default_factory=ServeSettings)
    schedules: ScheduleSettings = field(default_factory=ScheduleSettings)
    logs: LogSettings = field(default_factory=LogSettings)
    telemetry: TelemetrySettings = field(default_factory=TelemetrySettings)
