"""What passes between the guest and its supervisor: messages, the socket that carries them, and bytes that may be read
without a word being said. The only room of the guest that the rest of the house imports."""
