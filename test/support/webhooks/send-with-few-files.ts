/**
 * Run by a test as a program of its own, with few open files: sends to 60 origins, takes all files that are left, and sends once
 * more. Prints how many connections were kept, and the outcome of the last attempt.
 */
import { openSync } from 'node:fs';
import { deliveryTo, openSender } from './test-sender.ts';

const port = process.argv[2];
const urlOf = (host: number) => `http://127.0.0.${host}:${port}/hook`;

function takeAllFiles(): void {
  try {
    for (;;) openSync('/dev/null', 'r');
  } catch {
    // None is left.
  }
}

await using sender = openSender();
for (let host = 1; host <= 60; host += 1) await sender.send(deliveryTo(urlOf(host)));
const kept = sender.connections;
takeAllFiles();
const { outcome } = await sender.send(deliveryTo(urlOf(61)));
console.log(JSON.stringify({ kept, outcome }));
