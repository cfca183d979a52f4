/** The site: which Markdown of the repository is a page, and how it looks. */
import path from 'node:path';
import { addressOf } from './addresses.mjs';
import { linksToPages } from './links.mjs';
import { item, menu } from './menu.mjs';

const site = path.resolve(import.meta.dirname, '..');
const root = path.resolve(site, '../..');

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
    sidebar: menu(),
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

/** The same as on a code host, so that a link to a heading works here and there. */
function slugOfCodeHost(heading) {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
}
