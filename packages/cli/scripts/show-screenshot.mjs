// Makes docs/images/lousho-show.svg: a run that waits for a decision, as `lousho show` prints it. Build first; needs no network.
// node packages/cli/scripts/show-screenshot.mjs
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createAgent, defineTool, platformClock } from '@lousho/core';
import { SqliteStore } from '@lousho/store-sqlite';
import { mockModel } from '@lousho/testing';

const escapes = new RegExp('\u001b\\[[0-9;]*m', 'g');
const classes = { 1: 'b', 2: 'd', 31: 'r', 32: 'g', 33: 'y', 36: 'c' };

const root = path.resolve(import.meta.dirname, '../../..');
const folder = mkdtempSync(path.join(tmpdir(), 'lousho-screenshot-'));
try {
  await pauseRun(path.join(folder, 'support.db'));
  const words = ['show', 'refund-1042', '--store', 'sqlite:./support.db'];
  const { stdout, stderr, status } = spawnSync(
    process.execPath,
    [path.join(root, 'packages/cli/dist/bin.js'), ...words],
    { cwd: folder, encoding: 'utf8', env: { ...process.env, NO_COLOR: '', FORCE_COLOR: '1' } },
  );
  if (status !== 0) throw new Error(stderr);
  const file = path.join(root, 'docs/images/lousho-show.svg');
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, svgOf(['lousho', ...words].join(' '), stdout.trimEnd().split('\n')));
} finally {
  rmSync(folder, { recursive: true });
}

async function pauseRun(file) {
  const tool = (name, result, options) =>
    defineTool({
      name,
      description: name,
      input: { type: 'object' },
      execute: async () => result,
      ...options,
    });
  const usage = (inputTokens, outputTokens) => ({
    ...{ inputTokens, outputTokens },
    costUsd: inputTokens * 3e-6 + outputTokens * 15e-6,
  });
  const script = [
    {
      toolCalls: [
        { name: 'look_up_order', args: { order: 1042 } },
        { name: 'read_policy', args: { topic: 'refunds' } },
      ],
      usage: usage(1_812, 64),
    },
    {
      text: 'The parcel was lost, so the policy allows a full refund.',
      toolCalls: [{ name: 'refund_payment', args: { order: 1042, cents: 8_990, reason: 'parcel lost' } }],
      usage: usage(2_140, 88),
    },
  ];
  const store = new SqliteStore(file);
  const minutesAgo = 14;
  const agent = createAgent({
    name: 'support',
    provider: mockModel(script, { modelId: 'support-model' }),
    tools: [
      tool('look_up_order', { total: 8_990, currency: 'EUR', carrier: 'lost', paidWith: 'card' }),
      tool('read_policy', 'Lost parcels: refund in full within 30 days.'),
      tool('refund_payment', null, { needsApproval: true }),
    ],
    approvalTtlMs: 24 * 3_600_000,
    store,
    ports: { clock: { ...platformClock, wallMs: () => platformClock.wallMs() - minutesAgo * 60_000 } },
  });
  await agent.send('My order 1042 never arrived. I want my money back.', {
    sessionId: 'refund-1042',
    principal: { id: 'customer-77' },
  });
  await store.close();
}

/** The escapes of colours become classes; nothing else is in what `lousho` prints. */
function svgOf(command, lines) {
  const [lineHeight, charWidth, margin] = [19, 8.43, 18];
  const columns = Math.max(...lines.map((line) => line.replaceAll(escapes, '').length), command.length + 2);
  const height = (lines.length + 2) * lineHeight + 2 * margin + 12;
  const width = Math.ceil(columns * charWidth + 2 * margin);
  const rows = [`\u001b[32m$\u001b[39m ${command}`, '', ...lines].map((line, index) => {
    const y = margin + 34 + index * lineHeight;
    return `<text x="${margin}" y="${y}" xml:space="preserve">${spansOf(line)}</text>`;
  });
  const label = 'A terminal with the output of lousho show';
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-label="${label}">
<style>text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#d8dee9}.b{font-weight:700;fill:#fff}.d{fill:#8a94a6}.r{fill:#ff7b85}.g{fill:#8fd18f}.y{fill:#f0c674}.c{fill:#7fd1e0}</style>
<rect width="${width}" height="${height}" rx="10" fill="#1b2030"/>
<circle cx="20" cy="17" r="5" fill="#ff5f57"/><circle cx="37" cy="17" r="5" fill="#febc2e"/><circle cx="54" cy="17" r="5" fill="#28c840"/>
${rows.join('\n')}
</svg>
`;
}

function spansOf(line) {
  let style = '';
  let spans = '';
  for (const part of line.split(new RegExp('(\u001b\\[[0-9;]*m)'))) {
    if (part.startsWith('\u001b')) style = classes[part.slice(2, -1)] ?? '';
    else if (part !== '')
      spans += style === '' ? escaped(part) : `<tspan class="${style}">${escaped(part)}</tspan>`;
  }
  return spans;
}

function escaped(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
