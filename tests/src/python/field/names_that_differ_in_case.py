"""Names that differ in case are one name; names that only look alike are two.

The upcase table of Windows decides: a character outside of it stands for itself.
Reports: Ortham/libloadorder#61, jschicht/RawCopy#27, Nimblesite/SharpLsp#171.
"""

from fieldlib import *

# Pairs that a table with full case folding takes for one name.
DIFFERENT = [
    ("\u00b5", "\u03bc", "micro sign, mu"),
    ("\u00b5", "\u039c", "micro sign, capital mu"),
    ("\u017f", "s", "long s, s"),
    ("\u0131", "i", "dotless i, i"),
    ("\u0131", "I", "dotless i, capital i"),
    ("\u0130", "i", "capital i with dot, i"),
    ("\u212a", "k", "Kelvin sign, k"),
    ("\u212b", "\u00e5", "Angstrom sign, a with ring"),
    ("\u2126", "\u03c9", "Ohm sign, omega"),
    ("\u03f1", "\u03c1", "rho symbol, rho"),
    ("\u1e9e", "\u00df", "capital sharp s, sharp s"),
    ("\ufb01", "fi", "ligature, fi"),
    ("\u00df", "ss", "sharp s, ss"),
    # Neighbors: a combining mark, and a character of two UTF-16 units.
    ("\u00e4", "a\u0308", "a umlaut, a with a combining mark"),
    ("\U00010428", "\U00010400", "Deseret long i in both cases, a pair of surrogates"),
]
SAME = [
    ("\u00e4", "\u00c4", "a umlaut"),
    ("\u044f", "\u042f", "ya"),
    ("\u03c3", "\u03a3", "sigma"),
    ("\u03c9", "\u03a9", "omega"),
    ("\u00ff", "\u0178", "y diaeresis"),
    ("\uff41", "\uff21", "fullwidth a"),
    ("\u24d0", "\u24b6", "circled a"),
    ("\u2170", "\u2160", "Roman numeral one"),
    ("\u0561", "\u0531", "Armenian ayb"),
    # Neighbors.
    ("\u0450", "\u0400", "ie with grave"),
    ("\u1e01", "\u1e00", "a with ring below"),
    ("a", "A", "a"),
]


def relation(session, one, other):
    """`two` if both names can exist side by side, `one` if the second is the first."""
    session.write_file(f"case\\1{one}", b"first")
    second = lambda: session.open(f"case\\1{other}", disposition=CREATE).close()
    status = status_of(second)
    names = session.names("case")
    for name in names:
        session.remove("case\\" + name)
    if status == "OK" and len(names) == 2:
        return "two"
    if status == "OBJECT_NAME_COLLISION" and len(names) == 1:
        return "one"
    return f"{status}, {names}"


def main():
    with Server():
        session = Session()
        session.make_directory("case")
        for one, other, description in DIFFERENT:
            check_equal(f"{description}: two names", relation(session, one, other), "two")
        for one, other, description in SAME:
            check_equal(f"{description}: one name", relation(session, one, other), "one")
    finish()


main()
