#!/usr/bin/env python3
"""Files in MaxMind's format, written by mmdb_writer, which shares no line with hob's reader.

    database.py install          into target/mmdb, from PyPI; says why it could not
    database.py write KIND FILE  writes a file of networks that documentation has

Kinds: `country` as MaxMind's own, `moved` with other countries for the same networks, `flat` as
those of others, `v4` of IPv4 alone, `asn` without countries, `large` of 60,000 networks.
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "h3"))
import client  # noqa: E402

PACKAGES = ["mmdb-writer==0.2.7", "netaddr==1.3.0"]
VENV = HERE.parents[3] / "target" / "mmdb"

V4 = {"192.0.2.0/24": "DE", "198.51.100.0/24": "KP", "203.0.113.0/25": "AT"}
V6 = {"2001:db8::/32": "FR"}
MOVED = {"192.0.2.0/24": "KP", "198.51.100.0/24": "DE"}


def nested(code: str) -> dict:
    names = {"de": f"Land {code}", "en": f"Country {code}"}
    return {
        "continent": {"code": "XX", "names": names},
        "country": {"geoname_id": 1, "iso_code": code, "names": names},
        "registered_country": {"geoname_id": 2, "iso_code": "US", "names": names},
    }


def large() -> dict:
    """Networks of 10.0.0.0/8 and of documentation: every second one of 256 addresses."""
    codes = ["DE", "FR", "AT", "CH", "KP"]
    networks = {f"10.{at // 128}.{at % 128 * 2}.0/24": codes[at % 5] for at in range(60_000 // 2)}
    return networks | V4 | V6


KINDS = {
    "country": (V4 | V6, nested, "Test-Country", 6),
    "moved": (MOVED, nested, "Test-Country", 6),
    "flat": (V4 | V6, lambda code: {"asn": "AS64496", "country_code": code}, "Test-Lite", 6),
    "v4": (V4, lambda code: {"country": code}, "Test-Plain", 4),
    "asn": (V4 | V6, lambda _: {"autonomous_system_number": 64496}, "Test-ASN", 6),
    "large": (large(), nested, "Test-Country", 6),
}


def write(kind: str, file: str) -> None:
    from mmdb_writer import MMDBWriter
    from netaddr import IPSet

    networks, value, name, version = KINDS[kind]
    # With aliases, as MaxMind's own files have them: ::ffff:192.0.2.1 is 192.0.2.1.
    alias = {"ipv4_compatible": True} if version == 6 else {}
    writer = MMDBWriter(version, name, languages=["en"], description="of a test", **alias)
    for network, code in networks.items():
        writer.insert_network(IPSet([network]), value(code))
    writer.to_db_file(file)


if __name__ == "__main__":
    if sys.argv[1:] == ["install"]:
        sys.exit(client.install(VENV, PACKAGES) or None)
    write(*sys.argv[2:])
