/** A shell command as a group of processes: how it is started, and how all of it is ended. */
import { spawn, type ChildProcessByStdio } from 'node:child_process';
import type { Readable } from 'node:stream';

export type CommandProcess = ChildProcessByStdio<null, Readable, Readable>;

const isWindows = process.platform === 'win32';

/** In a group of its own, so that what it starts can be ended with it. */
export function startCommand(command: string, cwd: string, env: NodeJS.ProcessEnv): CommandProcess {
  const stdio: ['ignore', 'pipe', 'pipe'] = ['ignore', 'pipe', 'pipe'];
  return isWindows
    ? spawn(command, { cwd, env, stdio, shell: true, windowsHide: true })
    : spawn('/bin/sh', ['-c', command], { cwd, env, stdio, detached: true });
}

/** Ends the command and everything it started that did not leave its group. Gone already is fine. */
export function endGroup(child: CommandProcess, signal: 'SIGTERM' | 'SIGKILL'): void {
  if (child.pid === undefined) return;
  if (isWindows) {
    spawn('taskkill', ['/pid', String(child.pid), '/T', '/F'], { stdio: 'ignore', windowsHide: true }).on(
      'error',
      () => {
        child.kill();
      },
    );
    return;
  }
  try {
    process.kill(-child.pid, signal);
  } catch (error) {
    const code: unknown = error instanceof Error ? Reflect.get(error, 'code') : undefined;
    // ESRCH: the group is empty. EPERM: macOS says so of a group of which only zombies are left.
    if (code !== 'ESRCH' && code !== 'EPERM') throw error;
  }
}

/** What a command gets of our environment. Not the rest: keys of models and services are in there. */
export function safeEnvironment(): NodeJS.ProcessEnv {
  const names =
    /^(PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_.+|TZ|TERM|TMPDIR|TMP|TEMP|SYSTEMROOT|SYSTEMDRIVE|COMSPEC|PATHEXT|WINDIR|USERPROFILE|APPDATA|LOCALAPPDATA|PROGRAMFILES|PROGRAMDATA)$/i;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => names.test(name)));
}
