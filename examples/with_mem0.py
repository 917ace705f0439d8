"""Code written for mem0, with its import changed: python with_mem0.py [STORE]."""

from __future__ import annotations

import sys

from ebbtide.adapters.mem0 import Memory

with Memory(sys.argv[1] if len(sys.argv) > 1 else "mem0.db") as memory:
    memory.add(
        [
            {"role": "user", "content": "I moved to Porto in May."},
            {"role": "assistant", "content": "Noted."},
        ],
        user_id="ana",
    )
    tea = memory.add("I drink green tea every morning.", user_id="ana")["results"][0]["id"]
    memory.update(tea, "I drink black coffee every morning.")

    for found in memory.search("What do I drink?", user_id="ana", top_k=1)["results"]:
        sys.stdout.write(f"{found['score']:.2f} {found['memory']}\n")
    for version in memory.history(tea):
        sys.stdout.write(f"{version['event']}: {version['new_memory']}\n")
