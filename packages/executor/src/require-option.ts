/** Whether an option can be used, said by its name. Types say the same; plain JavaScript does not read them. */
import { ConfigurationError } from '@lousho/contract';

/** @throws synchronously LOUSHO_CONFIG_INVALID, as all of these do */
export function refuseOption(option: string, got: unknown, want: string): never {
  throw new ConfigurationError('LOUSHO_CONFIG_INVALID', { option, got, want });
}

export function requireWholeNumber(
  option: string,
  got: unknown,
  least: number,
  want = `a whole number, ${least} or more`,
): void {
  if (!Number.isSafeInteger(got) || (got as number) < least) refuseOption(option, got, want);
}

export function requireAbove(option: string, got: unknown, bound: number): void {
  if (typeof got !== 'number' || !(got > bound) || got === Infinity)
    refuseOption(option, got, `a number above ${bound}`);
}

export function requireAtLeast(option: string, got: unknown, least: number): void {
  if (typeof got !== 'number' || !(got >= least) || got === Infinity)
    refuseOption(option, got, `a number, ${least} or more`);
}

export function requireFunction(option: string, got: unknown): void {
  if (typeof got !== 'function') refuseOption(option, got, 'a function');
}

export function requireObject(option: string, got: unknown, want = 'an object'): void {
  if (typeof got !== 'object' || got === null || Array.isArray(got)) refuseOption(option, got, want);
}

export function requireText(option: string, got: unknown): void {
  if (typeof got !== 'string' || got === '') refuseOption(option, got, 'a text that is not empty');
}
