import { readdirSync } from 'node:fs';

const FOLDERS = ['docs', 'clients', 'deploy'];

/** The Markdown pages for users: the README, and those of the documentation and the examples. */
export function listPages(): string[] {
  const files = FOLDERS.flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => `${folder}/${name}`),
  );
  return ['README.md', 'CONTRIBUTING.md', ...files.filter((name) => name.endsWith('.md'))].sort();
}
