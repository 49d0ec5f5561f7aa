// Loaded before a program (`--import`): writes the addresses of the files that it has loaded to `TEST_MODULES_FILE`, one a line.
import { writeFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { isMainThread } from 'node:worker_threads';

const loaded = new Set<string>();
registerHooks({
  resolve(specifier, context, nextResolve) {
    const resolved = nextResolve(specifier, context);
    loaded.add(resolved.url);
    return resolved;
  },
});
if (isMainThread) process.on('exit', () => writeFileSync(process.env.TEST_MODULES_FILE ?? '', [...loaded].join('\n')));
