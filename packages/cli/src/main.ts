/** From arguments to an exit code. */
import { createRequire } from 'node:module';
import { CommanderError, type Command } from 'commander';
import { Context, type GlobalOptions } from './context.ts';
import { exitCodeOf, exitCodes, type ExitCode } from './exit-codes.ts';
import { textStream, type Io } from './node-io.ts';
import { buildProgram } from './program.ts';
import { reportError } from './report-error.ts';
import { OutputClosed } from './terminal/output.ts';
import { visible } from './terminal/visible-text.ts';

/** Runs one command. Never rejects. */
export async function main(args: readonly string[], io: Io): Promise<ExitCode> {
  let exitCode: ExitCode = exitCodes.ok;
  const program = buildProgram({
    version: ownVersion(),
    async execute(options, run) {
      exitCode = await execute(options, io, run);
    },
  });
  speakThrough(program, io);
  try {
    await program.parseAsync(args, { from: 'user' });
    return exitCode;
  } catch (error) {
    // Commander has said why, or has shown the help.
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
    reportError(error, { stderr: io.stderr, json: args.includes('--json'), colors: false });
    return exitCodeOf(error);
  }
}

function ownVersion(): string {
  const { version } = createRequire(import.meta.url)('../package.json') as { readonly version: string };
  return version;
}

async function execute(
  options: GlobalOptions,
  io: Io,
  run: (context: Context) => Promise<ExitCode | void>,
): Promise<ExitCode> {
  const context = new Context(options, io);
  const stopListening = io.onInterrupt(() => {
    if (!context.interrupt()) io.exit(exitCodes.interrupted);
  });
  const report = (error: unknown): ExitCode => {
    if (error instanceof OutputClosed) return exitCodes.ok;
    const { colors } = textStream(io.stderr, io.env, options.color === false);
    reportError(error, { stderr: io.stderr, json: options.json === true, colors });
    return exitCodeOf(error);
  };
  let exitCode: ExitCode;
  try {
    exitCode = (await run(context)) ?? exitCodes.ok;
  } catch (error) {
    exitCode = context.wasInterrupted && isAbort(error) ? exitCodes.interrupted : report(error);
  }
  try {
    await context.close();
  } catch (error) {
    exitCode = report(error);
  }
  stopListening();
  return context.wasInterrupted ? exitCodes.interrupted : exitCode;
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === 'AbortError';
}

/** Help goes to stdout, mistakes to stderr, and what was typed wrong comes back without its control characters. */
function speakThrough(program: Command, io: Io): void {
  const shown = (text: string) => text.split('\n').map(visible).join('\n');
  const speak = (command: Command): void => {
    command.exitOverride().configureOutput({
      writeOut: (text) => void io.stdout.write(shown(text)),
      writeErr: (text) => void io.stderr.write(shown(text)),
      getOutHasColors: () => false,
      getErrHasColors: () => false,
      getOutHelpWidth: () => io.stdout.columns ?? 80,
      getErrHelpWidth: () => io.stderr.columns ?? 80,
    });
    command.commands.forEach(speak);
  };
  speak(program);
}
