"""The values random requests are made of: names, paths, data, ACLs, quota texts."""

BASE = "/@ROOT@"
QUOTA = "/zookeeper/quota"

NAMES = ["a", "b", "c", "d", "e", "x y", "...", ".a", "a.", "\u00e9", "\u4e2d\u6587", "\u00a0", "\ufeff", "\u200b", "a-"]
# What may not be in a name, or only looks as if it could not; bytes are no UTF-8.
ODD_NAMES = [
    "\x00", "a\x00b", "\x01", "\x1f", "\x7f", "\x80", "\x9f", "\u0085", "\ud7ff", "\ue000", "\uf8ff", "\uf900",
    "\uffef", "\ufff0", "\ufffd", "\uffff", "\U0001f600", b"\xff", b"a\xc3", b"\xc0\x80", b"\xe2\x82", b"\xf8\x88",
    b"\xed\xa0\xbd\xed\xb8\x80", b"\xed\xa0\xbd", b"\xf4\x90\x80\x80",
]
ODD_TAILS = ["/", "//", "//a", "/./a", "/../a", "/.", "/..", "/a/", "/a//b", "/a/../b", "/a/./b", "/a/.", "/a/.."]
SPECIAL_PATHS = ["/", "", "/zookeeper", "/zookeeper/quota", "/zookeeper/config", "//", "/.", "/..", "a", "a/b", "foo/", None]

DIGESTS = {
    "u:p": "u:Jq7wMyA/w2Vd5WIDAKdu4OIIFEQ=",
    "super:test": "super:D/InIHSb7yEEbrWz8b9l71RjZJU=",
}
GOOD_AUTHS = [
    ("digest", b"u:p"), ("digest", b"w:q"), ("digest", b"nocolon"), ("digest", b":x"), ("digest", b""),
    ("digest", "\u00e9:\u4e2d".encode()), ("digest", b"a:b:c"), ("ip", b"ignored"), ("ip", None),
    ("digest", b"super:wrong"),
]
SUPER_AUTH = ("digest", b"super:test")
BAD_AUTHS = [
    ("foo", b"x"), (None, b"x"), ("", b"x"), ("world", b"anyone"), ("auth", b""), ("super", b""), ("sasl", b"x"),
    ("digest", None), ("Digest", b"u:p"),
]

OPEN = [{"perms": 31, "scheme": "world", "id": "anyone"}]
GOOD_IDS = [
    ("world", "anyone"), ("auth", ""), ("auth", "whatever"), ("digest", "u:Jq7wMyA/w2Vd5WIDAKdu4OIIFEQ="),
    ("digest", "a:b"), ("digest", "a:b:"), ("digest", ":b"), ("ip", "127.0.0.1"), ("ip", "127.0.0.0/8"),
    ("ip", "10.0.0.0/8"), ("ip", "127.0.0.1/32"), ("ip", "0.0.0.0/0"), ("ip", "::1"), ("ip", "fe80::/10"),
    ("digest", "\u00e9:\u4e2d"),
]
BAD_IDS = [
    ("world", "x"), ("world", ""), ("world", None), ("digest", "a"), ("digest", "a:"), ("digest", "a:b:c"),
    ("digest", "::"), ("digest", ""), ("digest", None), ("ip", "localhost"), ("ip", "1.2.3"), ("ip", "1.2.3.256"),
    ("ip", "1.2.3.4/33"), ("ip", "1.2.3.4/-1"), ("ip", "1.2.3.4/"), ("ip", "1.2.3.4/x"), ("ip", "::1/129"),
    ("ip", ":::"), ("ip", ""), ("super", ""), ("super", "x"), ("sasl", "x"), ("x509", "CN=x"), ("foo", "x"),
    ("", "x"), (None, "x"), (None, None), ("auth", None), ("ip", "1.2.3.4/8/8"), ("ip", "a::b::c"), ("ip", "1::2/64"),
]
PERMS = [1, 2, 4, 8, 16, 3, 7, 15, 31, 0, -1, 17, 32]

SOFT_LIMITS = [
    b"count=4,bytes=40", b"count=-1,bytes=20", b"count=3,bytes=-1", b"count=5;bytes=9", b"count=5",
    b"count=-1,bytes=-1", b"count=1,bytes=1=",
]
HARD_LIMITS = [
    b"count=-1,bytes=-1=;byteHardLimit=24;countHardLimit=4", b"count=2,bytes=5=;countHardLimit=3",
    b"count=2,bytes=5=;byteHardLimit=16", b"count=1,bytes=1=;byteHardLimit=40;countHardLimit=6",
]

BAD_CONNECTS = [
    b"\x00\x00\x00\x00", b"\x00\x00\x00\x03abc", b"\xff\xff\xff\xff", b"\x00\x10\x00\x00", b"\x7f\xff\xff\xff",
    b"xxxx", b"\x80\x00\x00\x00", b"GET / HTTP/1.0\r\n\r\n", b"\x00\x00\x00\x04\x00\x00\x00\x00",
    # A password that claims more bytes than the frame holds, and one of length -2.
    b"\x00\x00\x00\x1c" + bytes(24) + b"\x00\x00\x00\x10", b"\x00\x00\x00\x1c" + bytes(24) + b"\xff\xff\xff\xfe",
]
BAD_FRAMES = [b"\x00\x00\x00\x00", b"\x00\x00\x00\x03abc", b"\x00\x00\x00\x07abcdefg", b"\xff\xff\xff\xff",
              b"\x80\x00\x00\x00", b"\x00\x10\x00\x00", b"ruok", b"\x7f\xff\xff\xff"]
WORDS = [b"ruok", b"isro", b"ruok\n"]
