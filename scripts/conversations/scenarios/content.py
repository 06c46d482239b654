"""Files that scenarios attach."""

# The beginning of a PNG of 1 × 1 pixels, and a small PDF.
PNG = (
    b"\x89PNG\r\n"
    b"\x1a\n"
    b"\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89"
    b"\0\0\0\rIDATx\x9cc\xf8\xcf\xc0\xf0"
    b"\x1f\0\x05\0\x01\xff\x89\x99=\x1d\0\0\0\0IEND\xaeB`\x82"
)
PDF = b"%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"


def lines(word, count, changed=None):
    """Returns different lines, enough for diffs; line number `changed` is in capitals."""

    def one(number):
        return f"{word} {number} of a file that is longer than a reference\n"

    return "".join(
        one(number).upper() if number == changed else one(number) for number in range(1, count + 1)
    )
