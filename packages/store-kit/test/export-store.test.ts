/** An export is whole or is refused, comes back as it was, and is imported by the rules of a copy. */
import { crc32 as crcOfZlib } from 'node:zlib';
import { memoryStore } from '@lousho/store-memory';
import { describe, expect, it } from 'vitest';
import { crc32 } from '../src/crc32.ts';
import {
  checkExport,
  encryptedStore,
  exportStore,
  importStore,
  type ExportProgress,
  type ImportProgress,
} from '../src/index.ts';
import { SAVES, contentOf, fill, givenStore } from './support/filled-store.ts';
import { testKey } from './support/keys.ts';
import { notStores } from './support/not-stores.ts';
import { approvalRecord, inProgress, nextStep } from './support/records.ts';
import { textStore, threeMethodStore } from './support/text-store.ts';

const SAVED = 2 * SAVES + 2;

describe('an export', () => {
  it('brings runs with their history, approvals and sessions into another store, whatever the two are', async () => {
    for (const from of [
      memoryStore(),
      textStore().store,
      encryptedStore(memoryStore(), [testKey('2026-01')]),
    ]) {
      await fill(from);
      const text = await exported(from);
      for (const to of [memoryStore(), textStore().store]) {
        expect(await importStore(text, to)).toEqual({
          checkpoints: { copied: 3, equal: 0 },
          saves: SAVED,
          approvals: { copied: 1, equal: 0 },
          sessions: { copied: 1, equal: 0 },
          left: [],
        });
        expect(await contentOf(to)).toEqual(await contentOf(from));
      }
    }
  });

  it('reports each record, and changes nothing in the store that it reads', async () => {
    const from = await givenStore();
    await from.checkpoints.acquireLease('order-7', 'somebody', 30_000);
    const before = await contentOf(from);
    const [out, back]: [ExportProgress[], ImportProgress[]] = [[], []];
    const text = await exported(from, { onProgress: (step) => out.push(step) });
    expect(out.map(({ done, total, outcome }) => `${done}/${total} ${outcome}`)).toEqual(
      [1, 2, 3, 4, 5].map((done) => `${done}/5 exported`),
    );
    expect(await contentOf(from)).toEqual(before);
    expect(await from.checkpoints.saveIfLeased('order-7', inProgress(), 'somebody')).toBe(true);
    await importStore(text, memoryStore(), { onProgress: (step) => back.push(step) });
    expect(back.map(({ record, id, done }) => [record, id, done])).toEqual(
      out.map(({ record, id, done }) => [record, id, done]),
    );
  });

  it('keeps each message once, however many saves hold it', async () => {
    const from = memoryStore();
    let state = inProgress();
    for (let save = 0; save < 30; save += 1)
      await from.checkpoints.save('order-7', (state = nextStep(state, `said in save ${save}`)));
    const text = (await exported(from)).join('');
    expect(text.match(/said in save 3"/g)).toHaveLength(1);
  });

  it('can be read in pieces of any length, with the line ends of any system', async () => {
    const text = (await exported(await givenStore())).join('');
    const whole = await checkExport([text]);
    expect(whole).toEqual({ runs: 3, saves: SAVED, approvals: 1, sessions: 1, records: 5 });
    for (const pieceLength of [1, 7, 1_000])
      expect(await checkExport(piecesOf(text, pieceLength))).toEqual(whole);
    expect(await checkExport([text.replaceAll('\n', '\r\n')])).toEqual(whole);
  });

  it('is refused at the line that was changed, lost, exchanged, put in again or cut off', async () => {
    const lines = await exported(await givenStore());
    for (let index = 1; index < lines.length; index += 1) {
      const line = lines[index] ?? '';
      const damages = [
        lines.with(index, line.replace(/[a-y]/, 'z')),
        lines.with(index, line.slice(0, -5)),
        lines.toSpliced(index, 1),
        lines.toSpliced(index, 0, line),
        lines.slice(0, index),
      ];
      for (const damaged of damages)
        await expect(checkExport(damaged), `line ${index + 1}`).rejects.toMatchObject({
          code: 'LOUSHO_EXPORT_DAMAGED',
          retryable: false,
        });
    }
    const changed = lines.with(3, (lines[3] ?? '').replace('"', "'"));
    await expect(checkExport(changed)).rejects.toMatchObject({ details: { line: 4 } });
    await expect(checkExport([...lines, lines.at(-1) ?? ''])).rejects.toMatchObject({
      details: { line: lines.length + 1 },
    });
  });

  it('is refused when it is none, or of a later release', async () => {
    for (const text of [[], [''], ['{"a":1}\n'], ['no json'], ['{"lousho":"fixture"}\n']])
      await expect(checkExport(text)).rejects.toMatchObject({
        code: 'LOUSHO_CONFIG_INVALID',
        details: { option: 'text' },
      });
    await expect(checkExport(['{"lousho":"export","format":2,"c":"00000000"}\n'])).rejects.toMatchObject({
      code: 'LOUSHO_STORE_VERSION_UNSUPPORTED',
      details: { found: 2, supported: 1 },
    });
  });

  it('names what cannot be read, and holds the rest', async () => {
    const below = memoryStore();
    await below.checkpoints.save('plain', inProgress());
    const from = encryptedStore(below, [testKey('2026-01')]);
    await from.checkpoints.save('order-7', inProgress());
    const steps: ExportProgress[] = [];
    const text = await exported(from, { onProgress: (step) => steps.push(step) });
    expect(steps.map(({ id, outcome, error }) => [id, outcome, error?.code])).toEqual([
      ['order-7', 'exported', undefined],
      ['plain', 'unreadable', 'LOUSHO_STORE_NOT_SEALED'],
    ]);
    expect(await checkExport(text)).toMatchObject({ runs: 1 });
  });

  it('ends between two records when it is aborted, and what was written is no export', async () => {
    const abort = new AbortController();
    const written: string[] = [];
    const reading = (async () => {
      const options = { signal: abort.signal, onProgress: () => abort.abort(new Error('stopped')) };
      for await (const piece of exportStore(await givenStore(), options)) written.push(piece);
    })();
    await expect(reading).rejects.toThrow('stopped');
    await expect(checkExport(written)).rejects.toMatchObject({ code: 'LOUSHO_EXPORT_DAMAGED' });
  });
});

describe('an import', () => {
  it('writes nothing the second time', async () => {
    const text = await exported(await givenStore());
    const to = memoryStore();
    await importStore(text, to);
    const before = await contentOf(to);
    expect(await importStore(text, to)).toEqual({
      checkpoints: { copied: 0, equal: 3 },
      saves: 0,
      approvals: { copied: 0, equal: 1 },
      sessions: { copied: 0, equal: 1 },
      left: [],
    });
    expect(await contentOf(to)).toEqual(before);
  });

  it('is continued where it was aborted, or where the text was damaged', async () => {
    const from = await givenStore();
    const text = await exported(from);
    for (let abortedAfter = 1; abortedAfter <= 4; abortedAfter += 1) {
      const to = memoryStore();
      const abort = new AbortController();
      const stop = ({ done }: ImportProgress) => done === abortedAfter && abort.abort(new Error('stopped'));
      await expect(importStore(text, to, { signal: abort.signal, onProgress: stop })).rejects.toThrow(
        'stopped',
      );
      const { checkpoints, approvals, sessions } = await importStore(text, to);
      expect(checkpoints.equal + approvals.equal + sessions.equal).toBe(abortedAfter);
      expect(await contentOf(to)).toEqual(await contentOf(from));
    }
    const to = memoryStore();
    await expect(importStore(text.slice(0, -2), to)).rejects.toMatchObject({ code: 'LOUSHO_EXPORT_DAMAGED' });
    expect((await importStore(text, to)).left).toEqual([]);
    expect(await contentOf(to)).toEqual(await contentOf(from));
  });

  it('overwrites nothing that differs, takes nothing that executes, and names both', async () => {
    const text = await exported(await givenStore());
    const to = memoryStore();
    await to.checkpoints.save('order-7', inProgress({ runId: 'another-run' }));
    await to.checkpoints.acquireLease('order-8', 'somebody', 30_000);
    await to.approvals.save(approvalRecord('a-1', { args: 'another' }));
    expect((await importStore(text, to)).left).toEqual([
      { record: 'checkpoint', id: 'order-7', reason: 'differs' },
      { record: 'checkpoint', id: 'order-8', reason: 'executing-in-target' },
      { record: 'approval', id: 'a-1', reason: 'differs' },
    ]);
    expect(await to.checkpoints.load('order-7')).toMatchObject({ runId: 'another-run' });
  });

  it('refuses a target that lacks a part, and what is no store', async () => {
    const text = await exported(await givenStore());
    await expect(importStore(text, threeMethodStore())).rejects.toMatchObject({
      code: 'LOUSHO_CONFIG_INVALID',
      details: { option: 'to', want: 'a store that has approvals, as the export has' },
    });
    for (const [name, given, { option }] of notStores(memoryStore().checkpoints)) {
      const wrong = given as Parameters<typeof importStore>[1];
      const refused = (side: string) => ({ details: { option: `${side}${option}` } });
      await expect(importStore(text, wrong), name).rejects.toMatchObject(refused('to'));
      await expect(exported(wrong), name).rejects.toMatchObject(refused('from'));
    }
  });
});

describe('the checksum', () => {
  it('is the CRC-32 that everybody has, and goes on where it was', () => {
    for (const text of ['', 'a', '123456789', 'ünïcödé 🚀', 'x'.repeat(10_000)]) {
      expect(crc32(text)).toBe(crcOfZlib(text));
      expect(crc32(text, crc32('before'))).toBe(crcOfZlib(`before${text}`));
    }
  });
});

async function exported(...args: Parameters<typeof exportStore>): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of exportStore(...args)) lines.push(line);
  return lines;
}

function* piecesOf(text: string, length: number): Iterable<string> {
  for (let start = 0; start < text.length; start += length) yield text.slice(start, start + length);
}
