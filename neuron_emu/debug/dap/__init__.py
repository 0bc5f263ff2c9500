"""The Debug Adapter Protocol: the debugger behind an editor, on standard input and output.

The protocol is published at microsoft.github.io/debug-adapter-protocol; only its base framing and
the requests that a debugger of words needs are here.
"""
