/**
 * The page of docs/examples/chat in a real browser: a person types, watches, decides, reloads and has two tabs open, while the server is
 * killed with SIGKILL and started again. Without a Chromium it is skipped; with LOUSHO_CHROMIUM=required (.ci/run) it fails.
 */
import fs from 'node:fs';
import path from 'node:path';
import { chromium, type Browser, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { openaiChat } from '../../../packages/provider-ai-sdk/test/support/openai-chat.ts';
import { ANSWER } from '../../../packages/provider-ai-sdk/test/support/service.ts';
import { startWireServer } from '../../../packages/provider-ai-sdk/test/support/wire-server.ts';
import { givenExampleChat, runExample } from './support/chat-example.ts';

const executablePath = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(
  (file) => fs.existsSync(file),
);
if (executablePath === undefined && process.env['LOUSHO_CHROMIUM'] === 'required')
  throw new Error('LOUSHO_CHROMIUM is "required" and there is none: apt-get install chromium.');

/** Where the picture of the READMEs (docs/images/chat.png) comes from. */
const picture = path.resolve(import.meta.dirname, '../coverage/chat.png');

beforeAll(() => runExample('build'));

it('compiles', () => runExample('typecheck'));

it('asks a real model where there is a key for one', async () => {
  const service = await startWireServer();
  onTestFinished(() => service.close());
  service.answerWith(openaiChat.secondStep);
  const chat = await givenExampleChat();
  const env = { OPENAI_BASE_URL: service.baseUrl, OPENAI_API_KEY: 'key-7', MODEL: 'model-7' };
  await chat.start({ wordMs: 1, env });
  const said = { id: 'm1', role: 'user', parts: [{ type: 'text', text: 'How is the weather?' }] };
  const response = await fetch(`${chat.url}api/chat`, {
    method: 'POST',
    body: JSON.stringify({ id: 'chat', messages: [said] }),
  });
  expect(await response.text()).toContain(ANSWER.slice(-10));
  const [request] = service.requests;
  expect(request?.headers.authorization).toBe('Bearer key-7');
  expect(request?.body).toMatchObject({ model: 'model-7', stream: true });
});

describe.skipIf(executablePath === undefined)('in Chromium', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await chromium.launch({
      ...(executablePath === undefined ? undefined : { executablePath }),
      args: [
        ...['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'],
        ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
      ],
    });
  });
  afterAll(() => browser?.close());

  /** A browser of its own: no tab of it hears of the others. */
  async function openPage(url: string): Promise<Page> {
    const context = await browser.newContext({ viewport: { width: 760, height: 640 } });
    context.setDefaultTimeout(15_000);
    onTestFinished(() => context.close());
    const page = await context.newPage();
    await page.goto(url);
    return page;
  }

  async function say(page: Page, text: string): Promise<void> {
    await page.getByLabel('Message').fill(text);
    await page.getByLabel('Message').press('Enter');
  }

  const sees = (page: Page, text: string): Promise<void> => page.getByText(text).last().waitFor();
  const conversation = (page: Page): Promise<string> => page.locator('main').innerText();
  const waiting = (page: Page) => page.getByText('waits for you');
  const lost = 'The connection is lost.';
  const lastWords = 'as always with cards.';

  it('streams, waits for a yes, and is the same after a reload, also in the middle of a sentence', async () => {
    const chat = await givenExampleChat();
    await chat.start({ wordMs: 120 });
    const page = await openPage(chat.url);
    await say(page, 'Please refund order 7.');
    await sees(page, 'Let me look');
    expect(await conversation(page)).not.toContain('order 7 for you');
    await sees(page, 'A blue teapot, delivered');
    await waiting(page).waitFor();
    await page.screenshot({ path: picture });
    expect(chat.refunds()).toEqual([]);

    await page.reload();
    await waiting(page).waitFor();
    await page.getByRole('button', { name: 'Approve' }).click();
    await sees(page, 'Done:');
    expect(await conversation(page)).not.toContain(lastWords);
    await page.reload();
    await sees(page, 'Done: 49.00 euros');
    expect(await conversation(page)).not.toContain(lastWords);
    await sees(page, lastWords);
    expect(chat.refunds()).toHaveLength(1);

    const heard = await conversation(page);
    await page.reload();
    await sees(page, lastWords);
    expect(await conversation(page)).toBe(heard);
  });

  it('comes back by itself to a server that was killed in the middle, and nothing is paid twice', async () => {
    const chat = await givenExampleChat();
    // Before anything of the answer is stored: the page has the message, and sends it again.
    await chat.start({ wordMs: 1_000 });
    const page = await openPage(chat.url);
    await say(page, 'Please refund order 7.');
    await sees(page, 'Let me');
    await chat.kill();
    await sees(page, lost);
    await chat.start({ wordMs: 1 });
    await waiting(page).waitFor();
    expect(await page.getByText(lost).count()).toBe(0);

    // While it waits, and behind the refund, in the middle of the last sentence.
    await chat.kill();
    await chat.start({ wordMs: 1_000 });
    await page.getByRole('button', { name: 'Approve' }).click();
    await sees(page, 'Done:');
    await chat.kill();
    await sees(page, lost);
    await chat.start({ wordMs: 1 });
    await sees(page, lastWords);
    expect(chat.refunds()).toHaveLength(1);
    expect(await page.getByRole('article').count()).toBe(2);
    expect(await page.getByRole('region').count()).toBe(2);
  });

  it('tells the agent a no and why', async () => {
    const chat = await givenExampleChat();
    await chat.start({ wordMs: 1 });
    const page = await openPage(chat.url);
    await say(page, 'Please refund order 8.');
    await page.getByLabel('Reason').fill('It is not here yet.');
    await page.getByRole('button', { name: 'Reject' }).click();
    await sees(page, 'I have paid nothing back');
    await page.reload();
    await sees(page, 'It is not here yet.');
    await sees(page, 'rejected');
    expect(chat.refunds()).toEqual([]);
  });

  it('shows two tabs the same, and tells a page that was behind what became of its click', async () => {
    const chat = await givenExampleChat();
    await chat.start({ wordMs: 20 });
    const first = await openPage(chat.url);
    const second = await first.context().newPage();
    await second.goto(first.url());
    await say(first, 'Please refund order 7.');
    await waiting(first).waitFor();
    await waiting(second).waitFor();
    const behind = await openPage(first.url());
    await waiting(behind).waitFor();

    await second.getByRole('button', { name: 'Approve' }).click();
    await sees(first, lastWords);
    await waiting(first).waitFor({ state: 'detached' });
    expect(await waiting(behind).count()).toBe(1);
    await behind.getByRole('button', { name: 'Approve' }).click();
    await sees(behind, 'Somebody else has decided that already.');
    await sees(behind, lastWords);
    expect(chat.refunds()).toHaveLength(1);
  });

  it('stops an answer when a person wants it to', async () => {
    const chat = await givenExampleChat();
    await chat.start({ wordMs: 500 });
    const page = await openPage(chat.url);
    await say(page, 'Where is order 8?');
    await sees(page, 'Let me');
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByRole('button', { name: 'Send' }).waitFor();
    expect(await conversation(page)).not.toContain('for you');
  });
});
