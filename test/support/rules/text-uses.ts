/** Finds the texts of a catalogue that the source of the pages uses: by their path, by an alias, or all of a group. */

/** The paths of all texts: `hooks.states.working`. */
export function listTextPaths(catalogue: object, prefix = ''): string[] {
  return Object.entries(catalogue).flatMap(([key, value]) => {
    const path = prefix === '' ? key : `${prefix}.${key}`;
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? listTextPaths(value, path) : [path];
  });
}

/** `const t = texts.hooks;` and `const { nav } = messages;`, as name and path. */
function listAliases(source: string, roots: readonly string[]): (readonly [name: string, path: string])[] {
  const aliases: [string, string][] = roots.map((root) => [root, '']);
  const root = `(?:${roots.join('|')})`;
  for (const [, name = '', path = ''] of source.matchAll(
    new RegExp(`const (\\w+) = ${root}((?:\\.\\w+)+)(?:\\[[^\\]]+\\])?;`, 'g'),
  ))
    aliases.push([name, path.slice(1)]);
  const patterns = [
    new RegExp(`const \\{([^}]+)\\} = ${root}((?:\\.\\w+)*)(?:\\([^)]*\\))?;`, 'g'),
    /\{([^{}]+)\}: (?:Messages|ConsoleTexts|FrameTexts|NoticeTexts|ReferenceTexts)()/g,
    /const \{([^}]+)\} = choose\w+\([^)]*\)();/g,
  ];
  for (const pattern of patterns)
    for (const [, names = '', path = ''] of source.matchAll(pattern))
      for (const part of names.split(',')) {
        const [key = '', name = key] = part.split(':').map((word) => word.trim());
        if (/^\w+$/.test(key)) aliases.push([name, [path.slice(1), key].filter(Boolean).join('.')]);
      }
  return aliases;
}

/** Every path that the source mentions; a group of which it takes a text by a computed name as `group[]`. */
export function listUsedPaths(source: string, roots: readonly string[]): Set<string> {
  const used = new Set<string>();
  for (const [name, prefix] of listAliases(source, roots)) {
    const mention = new RegExp(`(?<!\\w|(?<!\\.\\.)\\.)${name}((?:\\.\\w+)*)(?!\\w)(\\[|\\))?`, 'g');
    for (const [, path = '', end] of source.matchAll(mention)) {
      const full = [prefix, path.slice(1)].filter(Boolean).join('.');
      used.add(end === '[' ? `${full}[]` : full);
    }
  }
  return used;
}

/** The texts that no source uses. A group inside of a page's texts that is handed on as a whole uses all of its texts. */
export function findUnusedTexts(paths: readonly string[], used: ReadonlySet<string>): string[] {
  return paths.filter((path) => {
    const parts = path.split('.');
    const groups = parts.slice(0, -1).map((_, at) => parts.slice(0, at + 1).join('.'));
    return (
      !used.has(path) &&
      !used.has(`${path}.replace`) &&
      !groups.some((group, at) => used.has(`${group}[]`) || (at > 0 && used.has(group)))
    );
  });
}
