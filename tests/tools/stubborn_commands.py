"""Shell commands that are hard to stop. Each prints `ready` and a pid when it is fully running."""

PLAIN = "echo ready $$; exec sleep 120"

PIPELINE = "(echo ready $$; sleep 120) | cat | cat; echo not reached"

GRANDCHILD_HOLDS_STDOUT = "sleep 120 & echo ready $!; wait"

IGNORES_TERM = """
python3 -c '
import os, signal
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
print("ready", os.getpid(), flush=True)
while True:
    signal.pause()
'"""

DOUBLE_FORKED = """
python3 -c '
import os, time
if os.fork():
    time.sleep(120)
os.setsid()
if os.fork():
    os._exit(0)
os.chdir("/")
print("ready", os.getpid(), flush=True)
null = os.open("/dev/null", os.O_RDWR)
for descriptor in range(3):
    os.dup2(null, descriptor)
time.sleep(120)
'"""

SETSID_NOHUP = """
nohup setsid sh -c 'echo ready $$ >&3; exec sleep 120' 3>&1 >/dev/null 2>&1 </dev/null 3>&3 &
sleep 120"""

FORK_STORM = """
python3 -c '
import os, time
until = time.monotonic() + 20
born = 0
while time.monotonic() < until:
    if born < 60 and os.fork() == 0:
        time.sleep(0.05)
        if os.fork():
            os._exit(0)
        os.setsid()
        time.sleep(120)
    born += 1
    if born == 40:
        print("ready", os.getpid(), flush=True)
    time.sleep(0.001)
'"""

STOPPED = """
sleep 120 & pid=$!; kill -STOP $pid
while ! grep -q '^State:.T' /proc/$pid/status; do :; done
echo ready $pid; wait"""

# On TERM, each process starts a copy in another session before it exits.
RESPAWNS = """
cat > respawn.py <<'EOF_SCRIPT'
import os, signal, subprocess, sys, time
def again(number, frame):
    subprocess.Popen([sys.executable, __file__], start_new_session=True)
    os._exit(0)
signal.signal(signal.SIGTERM, again)
print("ready", os.getpid(), flush=True)
time.sleep(120)
EOF_SCRIPT
python3 respawn.py"""

# A terminated child that its parent never waits for.
ZOMBIE = """
python3 -c '
import os, time
child = os.fork()
if child == 0:
    os._exit(0)
os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
print("ready", os.getpid(), flush=True)
time.sleep(120)
'"""

CLEARED_ENVIRONMENT = "env -i setsid sh -c 'echo ready $$; exec sleep 120' & wait"

# The same without a parent, once the outer shell has exited. Neither cookie, session nor parent identifies it.
CLEARED_DAEMON = "(env -i setsid sh -c 'echo ready $$; exec sleep 120' &); sleep 120"

# Like a key agent, its environment can't be read.
UNREADABLE = """
python3 -c '
import ctypes, os, time
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
if os.fork():
    time.sleep(120)
os.setsid()
if os.fork():
    os._exit(0)
print("ready", os.getpid(), flush=True)
time.sleep(120)
'"""

STUBBORN_COMMANDS = {
    "plain": PLAIN,
    "pipeline": PIPELINE,
    "grandchild_holds_stdout": GRANDCHILD_HOLDS_STDOUT,
    "ignores_term": IGNORES_TERM,
    "double_forked": DOUBLE_FORKED,
    "setsid_nohup": SETSID_NOHUP,
    "fork_storm": FORK_STORM,
    "stopped": STOPPED,
    "respawns": RESPAWNS,
    "zombie": ZOMBIE,
    "cleared_environment": CLEARED_ENVIRONMENT,
    "cleared_daemon": CLEARED_DAEMON,
    "unreadable": UNREADABLE,
}
