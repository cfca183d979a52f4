/** The options of every bundled store. */
import { describe, expect, it } from 'vitest';
import { ConfigurationError, isSDKError, resolveStoreOptions, type StoreOptions } from '../src/index.ts';

describe('resolveStoreOptions', () => {
  it('keeps 50 saves and 64 MiB of history, and finished runs for ever, when nothing is said', () => {
    const defaults = { historyLimit: 50, historyMaxBytes: 64 * 1024 * 1024, retentionMs: undefined };
    expect(resolveStoreOptions({})).toEqual(defaults);
    const unset = { historyLimit: undefined, historyMaxBytes: undefined, retentionMs: undefined };
    expect(resolveStoreOptions(unset)).toEqual(defaults);
  });

  it('takes 0 and whole numbers', () => {
    const given = { historyLimit: 0, historyMaxBytes: 1, retentionMs: 86_400_000 };
    expect(resolveStoreOptions(given)).toEqual(given);
  });

  const options: readonly (keyof StoreOptions)[] = ['historyLimit', 'historyMaxBytes', 'retentionMs'];
  const wrong: readonly unknown[] = [-1, 0.5, NaN, Infinity, 2 ** 53, '50', null, {}];
  it.each(options.flatMap((option) => wrong.map((value) => [option, value] as const)))(
    'refuses %s: %s and names it',
    (option, value) => {
      const resolve = (): unknown => resolveStoreOptions({ [option]: value });
      expect(resolve).toThrow(ConfigurationError);
      expect(resolve).toThrow(`"${option}" must be a whole number, 0 or more`);
      try {
        resolve();
      } catch (error) {
        expect(isSDKError(error, 'LOUSHO_CONFIG_INVALID') && error.details).toMatchObject({
          option,
          got: value,
        });
      }
    },
  );
});
