/**
 * Run by a test as a separate program with few open files: sends to 60 origins, opens all files that are left, and sends to
 * an address and to a name. Prints how many connections were kept, and the outcomes of the last two attempts.
 */
import { openSync } from 'node:fs';
import { deliveryTo, openSender } from './test-sender.ts';

const port = process.argv[2];
const urlOf = (host: number) => `http://127.0.0.${host}:${port}/hook`;

function takeAllFiles(): void {
  try {
    for (;;) openSync('/dev/null', 'r');
  } catch {
    // No file descriptor is left.
  }
}

await using sender = openSender();
// With allowed ranges a sender reads the hosts file before it resolves a name.
await using senderToNames = openSender({ allowCidrs: [] });
for (let host = 1; host <= 60; host += 1) await sender.send(deliveryTo(urlOf(host)));
const kept = sender.connections;
takeAllFiles();
const toAddress = await sender.send(deliveryTo(urlOf(61)));
const toName = await senderToNames.send(deliveryTo(`http://hooks.example.com:${port}/hook`));
console.log(JSON.stringify({ kept, outcomes: [toAddress.outcome, toName.outcome] }));
