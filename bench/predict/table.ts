/** Formats columns of text, each as wide as its widest cell. */
export function renderTable(head: readonly string[], lines: readonly (readonly string[])[]): string {
  const widths = head.map((title, index) => Math.max(title.length, ...lines.map((line) => line[index]!.length)));
  return [head, ...lines]
    .map((line) =>
      line
        .map((cell, index) => cell.padEnd(widths[index]!))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
