/** The built `lousho` on a terminal: a pseudo-terminal that Python makes. */
import { spawnSync } from 'node:child_process';
import { bin } from './cli-process.ts';

export interface PtyOptions {
  readonly cwd: string;
  readonly columns: number;
  /** Keys to press when a text is seen, one after the other. */
  readonly answers?: readonly { readonly when: string; readonly press: string }[];
}
export interface PtyResult {
  readonly exitCode: number | null;
  /** What the terminal got: stdout and stderr. */
  readonly screen: string;
}

/** Why tests on a terminal are left out here, or `undefined`. */
export const noPtyReason =
  spawnSync('python3', ['-c', 'import pty, fcntl, termios']).status === 0
    ? undefined
    : 'python3 with its module pty is not installed';

export function loushoOnTerminal(
  args: readonly string[],
  { cwd, columns, answers = [] }: PtyOptions,
): PtyResult {
  const command = [process.execPath, bin, ...args];
  const { status, stdout, stderr } = spawnSync(
    'python3',
    ['-c', script, JSON.stringify({ command, columns, answers })],
    { cwd, encoding: 'utf8', env: { PATH: process.env.PATH, TERM: 'xterm', LANG: 'C.UTF-8' } },
  );
  if (status === null || stderr !== '') throw new Error(`python3: ${stderr}`);
  return { exitCode: status, screen: stdout.replaceAll('\r\n', '\n') };
}

const script = `
import fcntl, json, os, pty, struct, sys, termios
asked = json.loads(sys.argv[1])
answers = asked['answers']
pid, fd = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack('HHHH', 50, asked['columns'], 0, 0))
    os.execv(asked['command'][0], asked['command'])
seen = b''
unread = b''
while True:
    try:
        chunk = os.read(fd, 65536)
    except OSError:
        break
    if not chunk:
        break
    seen += chunk
    unread += chunk
    if answers and answers[0]['when'].encode() in unread:
        os.write(fd, answers.pop(0)['press'].encode())
        unread = b''
sys.stdout.buffer.write(seen)
sys.stdout.flush()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
`;
