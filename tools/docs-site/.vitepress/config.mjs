/** The site: which Markdown of the repository is a page, under which address, and in which menu. */
import path from 'node:path';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { entryPoints } from '../api-pages.mjs';
import { linksToPages } from './links.mjs';
import { addressOf, linkTo } from './addresses.mjs';

const site = path.resolve(import.meta.dirname, '..');
const root = path.resolve(site, '../..');
const packages = readdirSync(path.join(root, 'packages')).filter((name) =>
  existsSync(path.join(root, 'packages', name, 'README.md')),
);

/** @type {import('vitepress').UserConfig} */
export default {
  title: 'Lousho',
  description: 'Durable execution for AI agents in TypeScript',
  lang: 'en',
  // No request for an icon that is not there.
  head: [['link', { rel: 'icon', href: 'data:,' }]],
  base: process.env.DOCS_BASE ?? '/',
  srcDir: root,
  outDir: path.join(site, 'dist'),
  cacheDir: path.join(site, '.cache'),
  srcExclude: [
    '**/CHANGELOG.md',
    '.*/**',
    '**/coverage/**',
    '**/{src,test}/**',
    'tools/!(docs-site)/**',
    'tools/docs-site/*.md',
  ],
  rewrites: addressOf,
  cleanUrls: false,
  vite: { plugins: [vueForPages()], build: { chunkSizeWarningLimit: 2_000 } },
  markdown: {
    config: (md) => md.use(linksToPages, root),
    anchor: { slugify: slugOfCodeHost },
    theme: { light: 'github-light', dark: 'github-dark' },
  },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    nav: ['docs/start.md', 'docs/guarantees.md', 'docs/README.md', 'tools/docs-site/api/README.md'].map(item),
    sidebar: [
      section('Begin', [
        'README.md',
        'docs/start.md',
        'docs/guarantees.md',
        'docs/contract.md',
        'docs/glossary.md',
      ]),
      section('Build', ['docs/sessions.md', 'docs/approvals.md', 'docs/delegation.md', 'docs/testing.md']),
      section('Run', [
        'docs/operations.md',
        'docs/deploying.md',
        'docs/stores.md',
        'docs/build-a-store.md',
        'docs/errors/README.md',
      ]),
      section('Come from', [
        'docs/migrate/langgraph.md',
        'docs/migrate/ai-sdk.md',
        'docs/migrate/openai-agents.md',
      ]),
      {
        text: 'Packages',
        collapsed: true,
        items: packages.map((name) => item(`packages/${name}/README.md`)),
      },
      {
        text: 'API reference',
        collapsed: true,
        items: entryPoints().map(([name]) => item(`tools/docs-site/api/${name}.md`)),
      },
    ],
  },
};

/** The pages lie outside of the folder that has Vue. */
function vueForPages() {
  return {
    name: 'vue-for-pages',
    enforce: 'pre',
    resolveId(source, importer = '', { ssr }) {
      if (!/^vue(\/|$)/.test(source)) return undefined;
      if (ssr) return { id: source, external: true };
      if (importer.startsWith(site)) return undefined;
      return this.resolve(source, path.join(site, 'package.json'), { skipSelf: true });
    },
  };
}

function section(text, files) {
  return { text, items: files.map(item) };
}

/** A line of a menu: the heading of the page, and where it is. */
function item(file) {
  const [, heading] = /^# (.*)$/m.exec(readFileSync(path.join(root, file), 'utf8'));
  return { text: heading, link: linkTo(file) };
}

/** The same as on a code host, so that a link to a heading works here and there. */
function slugOfCodeHost(heading) {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
}
