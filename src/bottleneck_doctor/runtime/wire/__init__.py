"""What passes between the guest and its supervisor: messages, the socket that carries them, and files that the
supervisor can read at any time. Outside `runtime/`, only this package of the guest may be imported."""
