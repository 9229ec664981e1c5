"""An office building in the words of Brick 1.4: air handlers, boxes that let their air into zones, rooms, and points.

An air handler feeds boxes of variable air volume (VAV); each feeds a zone of one or two rooms. Points are what the
automation of the building reads and writes: sensors, setpoints and commands. As in real buildings, there are several
ways to write it down: sensors of rooms have one of two classes, boxes one of three, and some points are said to be of
things, while some things are said to have points.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

BUILDING = "http://building.example/"
PREFIXES = {
    "": BUILDING,
    "brick": "https://brickschema.org/schema/Brick#",
    "rec": "https://w3id.org/rec#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
}


class Kind(NamedTuple):
    """A kind of points of a thing, and about what values they have."""

    name: str
    class_: str
    normal: float
    swing: float
    """How much more it is in the afternoon."""
    noise: float


TEMPERATURE, DAMPER = "temperature", "damper"
"""The kinds whose values are simulated: of rooms, and of their boxes."""

OF_AIR_HANDLER = (
    Kind("supply_temperature", "Supply_Air_Temperature_Sensor", 14, 0.5, 0.2),
    Kind("supply_temperature_setpoint", "Supply_Air_Temperature_Setpoint", 14, 0, 0),
    Kind("return_temperature", "Return_Air_Temperature_Sensor", 22, 1.5, 0.1),
    Kind("mixed_temperature", "Mixed_Air_Temperature_Sensor", 18, 2, 0.2),
    Kind("outside_temperature", "Outside_Air_Temperature_Sensor", 9, 6, 0.2),
    Kind("supply_humidity", "Supply_Air_Humidity_Sensor", 55, 5, 1),
    Kind("return_humidity", "Return_Air_Humidity_Sensor", 45, 5, 1),
    Kind("return_co2", "Return_Air_CO2_Sensor", 450, 250, 15),
    Kind("static_pressure", "Supply_Air_Static_Pressure_Sensor", 350, 50, 8),
    Kind("static_pressure_setpoint", "Supply_Air_Static_Pressure_Setpoint", 370, 0, 0),
    Kind("supply_flow", "Supply_Air_Flow_Sensor", 2000, 6000, 150),
    Kind("supply_fan_speed", "Fan_Speed_Command", 30, 45, 1),
    Kind("return_fan_speed", "Fan_Speed_Command", 25, 45, 1),
    Kind("fan_status", "Fan_Status", 1, 0, 0),
    Kind("outside_damper", "Damper_Position_Command", 0, 80, 2),
    Kind("chilled_water_valve", "Valve_Position_Command", 5, 50, 2),
    Kind("hot_water_valve", "Valve_Position_Command", 30, -25, 2),
    Kind("filter_pressure", "Filter_Differential_Pressure_Sensor", 80, 40, 2),
    Kind("power", "Electric_Power_Sensor", 3, 12, 0.3),
    Kind("enabled", "Enable_Command", 1, 0, 0),
)
OF_BOX = (
    Kind(DAMPER, "Damper_Position_Command", 0, 0, 0),
    Kind("damper_position", "Damper_Position_Sensor", 10, 40, 2),
    Kind("flow", "Supply_Air_Flow_Sensor", 60, 250, 10),
    Kind("flow_setpoint", "Supply_Air_Flow_Setpoint", 60, 250, 0),
    Kind("discharge_temperature", "Discharge_Air_Temperature_Sensor", 16, 2, 0.3),
)
OF_ZONE = (Kind("setpoint", "Target_Zone_Air_Temperature_Setpoint", 22, 0, 0),)
OF_ROOM = (
    Kind(TEMPERATURE, "Zone_Air_Temperature_Sensor", 22, 0, 0),
    Kind("humidity", "Zone_Air_Humidity_Sensor", 45, 5, 1),
    Kind("co2", "CO2_Sensor", 430, 300, 20),
    Kind("occupied", "Occupancy_Sensor", 0, 1, 0),
)
BOX_CLASSES = ("VAV", "Variable_Air_Volume_Box", "Variable_Air_Volume_Box_With_Reheat")
SENSOR_CLASSES = ("Zone_Air_Temperature_Sensor", "Room_Air_Temperature_Sensor")
ROOM_CLASSES = ("Office", "Office", "ConferenceRoom")


class Room(NamedTuple):
    name: str
    box: int
    """The number of the box that feeds its zone."""


@dataclass(frozen=True)
class Building:
    """How large a building is. Every second zone has two rooms, the others one."""

    air_handlers: int = 10
    boxes: int = 40
    """Boxes of each air handler."""

    @property
    def box_names(self) -> list[str]:
        """As in 3-17: the 17th box of the third air handler."""
        numbers = range(1, self.boxes + 1)
        return [f"{handler}-{box}" for handler in range(1, self.air_handlers + 1) for box in numbers]

    @property
    def rooms(self) -> list[Room]:
        zones = enumerate(self.box_names)
        return [Room(f"room-{name}{part}", box) for box, name in zones for part in ("a", "b")[: 1 + box % 2]]

    @property
    def points(self) -> list[tuple[str, Kind]]:
        """The names of all points with their kinds: of air handlers, then boxes, zones and rooms."""
        handlers = [f"ahu-{number}" for number in range(1, self.air_handlers + 1)]
        things = (
            (handlers, OF_AIR_HANDLER),
            ([f"vav-{name}" for name in self.box_names], OF_BOX),
            ([f"zone-{name}" for name in self.box_names], OF_ZONE),
            ([room.name for room in self.rooms], OF_ROOM),
        )
        return [(f"{thing}.{kind.name}", kind) for names, kinds in things for thing in names for kind in kinds]


def turtle(building: Building) -> str:
    """The building as Turtle."""
    head = (f"@prefix {name}: <{iri}> ." for name, iri in PREFIXES.items())
    return "\n".join([*head, *_air_handlers(building), *_boxes(building), *_rooms(building)])


def _air_handlers(building: Building) -> Iterator[str]:
    for number in range(1, building.air_handlers + 1):
        name = f"ahu-{number}"
        yield f":{name} a brick:{'AHU' if number % 2 else 'Air_Handling_Unit'} ; brick:hasPart :{name}.outside ."
        yield f":{name}.outside a brick:Outside_Damper ."
        for kind in OF_AIR_HANDLER:
            owner = f"{name}.outside" if kind.name == "outside_damper" else name
            yield f":{name}.{kind.name} a brick:{kind.class_} ; brick:isPointOf :{owner} ."


def _boxes(building: Building) -> Iterator[str]:
    for number, name in enumerate(building.box_names):
        box, zone, handler = f"vav-{name}", f"zone-{name}", f"ahu-{name.partition('-')[0]}"
        yield f":{handler} brick:feeds :{box} . :{box} a brick:{BOX_CLASSES[number % 3]} ; brick:feeds :{zone} ."
        yield f":{box}.box a brick:Damper ; brick:isPartOf :{box} . :{zone} a rec:HVACZone ."
        for kind in OF_BOX:
            owner = f"{box}.box" if kind.name.startswith(DAMPER) else box
            yield f":{box}.{kind.name} a brick:{kind.class_} ; brick:isPointOf :{owner} ."
        for kind in OF_ZONE:
            yield f":{zone}.{kind.name} a brick:{kind.class_} ; brick:isPointOf :{zone} ."


def _rooms(building: Building) -> Iterator[str]:
    for number, (name, box) in enumerate(building.rooms):
        yield f":zone-{building.box_names[box]} brick:hasPart :{name} . :{name} a rec:{ROOM_CLASSES[number % 3]} ."
        for kind in OF_ROOM:
            class_ = SENSOR_CLASSES[number // 2 % 2] if kind.name == TEMPERATURE else kind.class_
            yield f":{name} brick:hasPoint :{name}.{kind.name} . :{name}.{kind.name} a brick:{class_} ."
