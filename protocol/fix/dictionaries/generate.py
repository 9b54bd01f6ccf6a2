#!/usr/bin/env python3
"""Writes the compact dictionaries beside it: generate.py SPEC, where SPEC holds FIX40.xml to FIX50SP2.xml and FIXT11.xml.

Kept: tags, types, allowed values, required fields, repeating groups. Left out: names and descriptions, which no code needs.
"""
import pathlib
import sys
import xml.etree.ElementTree as xml

VERSIONS = ["FIX40", "FIX41", "FIX42", "FIX43", "FIX44", "FIX50", "FIX50SP1", "FIX50SP2", "FIXT11"]


def members(parent, tags, components):
    """`11` optional, `11!` required, `453(448! 447)` a group, `@3` a component."""
    words = []
    for child in parent:
        required = "!" if child.get("required") == "Y" else ""
        name = child.get("name")
        if child.tag == "component":
            words.append(f"@{components[name]}{required}")
        elif child.tag == "group":
            words.append(f"{tags[name]}{required}({members(child, tags, components)})")
        else:
            words.append(f"{tags[name]}{required}")
    return " ".join(words)


def in_order(definitions):
    """Components, each after those that it is made of."""
    ordered = {}

    def visit(name):
        if name not in ordered:
            for used in definitions[name].iter("component"):
                if used is not definitions[name]:
                    visit(used.get("name"))
            ordered[name] = len(ordered)

    for name in definitions:
        visit(name)
    return ordered


def convert(source):
    root = xml.parse(source).getroot()
    tags = {field.get("name"): int(field.get("number")) for field in root.find("fields")}
    definitions = {component.get("name"): component for component in root.findall("components/component")}
    components = in_order(definitions)
    lines = []
    for field in sorted(root.find("fields"), key=lambda field: int(field.get("number"))):
        values = [value.get("enum") for value in field.iter("value")]
        # A value with a space stands for a list that is kept elsewhere, such as "ISO Country Code".
        values = [] if any(" " in value for value in values) else values
        # In 4.0 and 4.1 the specification calls any text CHAR.
        kind = "STRING" if field.get("type") == "CHAR" and source.stem in ("FIX40", "FIX41") else field.get("type")
        lines.append(" ".join(["field", field.get("number"), kind, *sorted(set(values))]))
    for name in components:
        lines.append(f"component {members(definitions[name], tags, components)}")
    for part in ["header", "trailer"]:
        if len(root.find(part)) > 0:
            lines.append(f"{part} {members(root.find(part), tags, components)}")
    for message in sorted(root.find("messages"), key=lambda message: message.get("msgtype")):
        lines.append(f"message {message.get('msgtype')} {members(message, tags, components)}".rstrip())
    return "\n".join(lines) + "\n"


for version in VERSIONS:
    text = convert(pathlib.Path(sys.argv[1]) / f"{version}.xml")
    (pathlib.Path(__file__).parent / f"{version}.txt").write_text(text)
