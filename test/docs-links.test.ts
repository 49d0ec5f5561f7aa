/** Links between pages lead to a file that exists, and to a heading in it. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { test } from 'node:test';
import { listPages } from './support/rules/pages.ts';

const withoutCode = (text: string): string => text.replaceAll(/```[\s\S]*?```/g, '');

/** The anchors that GitHub makes of the headings of a page. */
function listAnchors(text: string): Set<string> {
  const headings = [...withoutCode(text).matchAll(/^#{1,6} (.*)$/gm)].map(([, heading = '']) => heading);
  return new Set(
    headings.map((heading) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}_\- ]/gu, '')
        .replaceAll(' ', '-'),
    ),
  );
}

function listBrokenLinks(file: string, read: (path: string) => string | undefined): string[] {
  const links = [...withoutCode(read(file) ?? '').matchAll(/\]\(([^()\s]+)\)/g)].map(([, target = '']) => target);
  return links.filter((target) => {
    if (/^[a-z]+:/.test(target)) return false;
    const [path = '', anchor] = target.split('#');
    const found = path === '' ? file : normalize(join(dirname(file), path));
    const text = read(found);
    return text === undefined || (anchor !== undefined && !listAnchors(text).has(anchor));
  });
}

const readPage = (path: string): string | undefined => {
  if (!existsSync(path)) return undefined;
  return path.endsWith('.md') ? readFileSync(path, 'utf8') : '';
};

test('every link between pages leads somewhere', () => {
  const pages = listPages();
  assert.ok(pages.length > 30, `only ${pages.length} pages were found`);
  const broken = pages.flatMap((file) => listBrokenLinks(file, readPage).map((target) => `${file}: ${target}`));
  assert.deepEqual(broken, []);
});

test('a link to a missing page or heading is found', () => {
  const pages = new Map([
    ['docs/a.md', '# A\n[b](b.md) [c](c.md) [x](b.md#one-two) [y](b.md#three) [z](#a)'],
    ['docs/b.md', '# B\n## One `two`\n'],
  ]);
  assert.deepEqual(
    listBrokenLinks('docs/a.md', (path) => pages.get(path)),
    ['c.md', 'b.md#three'],
  );
});
