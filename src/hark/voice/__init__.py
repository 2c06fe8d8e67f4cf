"""Voice: transcribes voice messages before they enter the inbox, and converts replies to speech."""
