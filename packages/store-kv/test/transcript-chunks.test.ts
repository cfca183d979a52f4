/** However a transcript grows, is cut back and changes: its parts and its rest are the transcript, and a part that is kept is the same. */
import type { Message } from '@lousho/contract';
import fc from 'fast-check';
import { crc32 as crc32OfBytes } from 'node:zlib';
import { expect, it } from 'vitest';
import { crc32, seal, unseal } from '../src/checked-text.ts';
import {
  CHUNK_BYTES,
  cutTranscript,
  extentOf,
  keptChunks,
  WHOLE_BYTES,
  type Chunk,
  type Transcript,
} from '../src/transcript-chunks.ts';

const message = fc
  .tuple(fc.integer({ min: 0, max: 9 }), fc.integer({ min: 0, max: 40_000 }))
  .map(([digit, length]): Message => ({ role: 'user', content: String(digit).repeat(length) }));
const change = fc.record({
  keep: fc.integer({ min: 0, max: 30 }),
  add: fc.array(message, { maxLength: 8 }),
  inputIds: fc.integer({ min: 0, max: 3 }),
});

it('holds for every sequence of changes', () => {
  fc.assert(
    fc.property(fc.array(change, { minLength: 1, maxLength: 12 }), (changes) => {
      const stored = new Map<string, Transcript>();
      let tag = 0;
      let chunks: readonly Chunk[] = [];
      let before: Transcript = { messages: [], inputIds: [] };
      for (const { keep, add, inputIds } of changes) {
        const kept = before.messages.slice(0, Math.max(keep, before.messages.length - 4));
        const ids = Array.from({ length: inputIds }, () => `input-${(tag += 1)}`);
        const next = { messages: [...kept, ...add], inputIds: [...before.inputIds, ...ids] };
        const known = keptChunks(chunks, before, next);
        const cut = cutTranscript(next, known, { nowMs: 0, newTag: () => String((tag += 1)) });
        for (const { chunk, content } of cut.added) {
          expect(stored.has(chunk.name)).toBe(false);
          stored.set(chunk.name, content);
        }
        const parts = [...cut.chunks.map(({ name }) => stored.get(name) as Transcript), cut.rest];
        expect(parts.flatMap(({ messages }) => messages)).toEqual(next.messages);
        expect(parts.flatMap(({ inputIds: of }) => of)).toEqual(next.inputIds);
        const restBytes = JSON.stringify(cut.rest.messages).length;
        expect(restBytes).toBeLessThan(cut.chunks.length === 0 ? WHOLE_BYTES + 100 : CHUNK_BYTES + 100);
        [chunks, before] = [cut.chunks, next];
      }
    }),
    { numRuns: 150 },
  );
});

it('keeps no part whose messages, or whose input ids, are others', () => {
  const messages = Array.from({ length: 6 }, (_none, index): Message => {
    return { role: 'user', content: String(index).repeat(20_000) };
  });
  const before = { messages, inputIds: ['a', 'b'] };
  const { chunks } = cutTranscript(before, [], { nowMs: 0, newTag: () => 't' });
  expect(extentOf(chunks)).toEqual({ messages: 6, inputIds: 2 });
  expect(keptChunks(chunks, before, before)).toEqual(chunks);
  expect(keptChunks(chunks, before, { ...before, messages: messages.slice(0, 3) }).length).toBe(1);
  expect(keptChunks(chunks, before, { ...before, inputIds: ['a', 'c'] })).toEqual([]);
});

it('finds every change of one unit in a sealed text', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: 'binary', minLength: 1 }),
      fc.nat(),
      fc.integer({ min: 1, max: 0xffff }),
      (text, at, flip) => {
        expect(crc32(text)).toBe(crc32OfBytes(Buffer.from(text, 'utf16le')));
        const index = at % text.length;
        const changed =
          text.slice(0, index) + String.fromCharCode(text.charCodeAt(index) ^ flip) + text.slice(index + 1);
        expect(crc32(changed)).not.toBe(crc32(text));
        expect(unseal(seal({ text }))).toEqual({ kind: 'sealed', fields: { text } });
      },
    ),
  );
});
