"""An attribution service in forty lines: blame the node whose name a line of evidence holds.

Start it with ``python examples/attribution_server.py 8765``, and name it in ``relight.toml`` as
``docs/attribution.md`` shows.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def opinion_of(request: dict[str, Any]) -> dict[str, Any]:
    """Return what this service thinks of one failure."""
    failure = request.get("failure_context", {})
    text = "\n".join(failure.get("evidence", []))
    named = [node for node in request["scope"].get("nodes", []) if node in text]
    if not named:
        return {"status": "no_opinion", "sentence": "no line of the evidence names a node"}
    return {
        "status": "final",
        "domain": "hardware",
        "cause": "named-in-evidence",
        "sentence": f"the evidence names {named[0]}",
        "confidence": 0.6,
        "nodes": named[:1],
        "decision": "restart_excluding_node",
    }


class Handler(BaseHTTPRequestHandler):
    """Answers POST /v1/attribution."""

    def do_POST(self) -> None:
        """Read the request, form an opinion, and send it."""
        request = json.loads(self.rfile.read(int(self.headers.get("Content-Length", "0"))))
        body = json.dumps(opinion_of(request)).encode()
        self.send_response(200 if self.path == "/v1/attribution" else 404)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
