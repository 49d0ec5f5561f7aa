/** Writes the pages `docs/how-it-works/files/*.md`: every source file of `src/` and `clients/` but tests with its first sentence, one page for each area. */
import { listClientFiles, listSourceFiles, type SourceFile } from './list-source-files.ts';

const AREAS = ['prediction', 'authorization', 'webhooks', 'console'] as const;

/** Returns the texts of the pages by path. */
export function describeFiles(): Record<string, string> {
  const files = listSourceFiles();
  const isOf = (area: string) => (file: SourceFile) => `${file.module}/`.startsWith(`src/${area}/`);
  const pages = AREAS.map((area) => [toPath(area), renderPage(`src/${area}`, files.filter(isOf(area)))] as const);
  const others = files.filter((file) => !AREAS.some((area) => isOf(area)(file)));
  const clients = [toPath('clients'), renderPage('clients', listClientFiles())] as const;
  return Object.fromEntries([...pages, [toPath('mechanisms'), renderPage('src', others)], clients]);
}

function toPath(area: string): string {
  return `docs/how-it-works/files/${area}.md`;
}

function renderPage(root: string, files: readonly SourceFile[]): string {
  const modules = Map.groupBy(files, (file) => file.module);
  const sections = [...modules].map(([module, own]) => renderModule(module.slice(root.length + 1), own));
  return `# Files in \`${root}/\`${root === 'src' ? ' outside the areas' : ''}

Each line is the first sentence of a file. This page is generated; change the sentence, then run \`npm run generate\`.
What the modules are for: [architecture](../architecture.md).

${sections.join('\n\n')}
`;
}

function renderModule(name: string, files: readonly SourceFile[]): string {
  const lines = files.map((file) => `- \`${file.path.slice(file.module.length + 1)}\`: ${readSentence(file)}`);
  return `${name === '' ? '' : `## \`${name}/\`\n\n`}${lines.join('\n')}`;
}

function readSentence({ path, sentence }: SourceFile): string {
  if (sentence === undefined) throw new Error(`${path} does not begin with a comment, before its imports`);
  return sentence;
}
