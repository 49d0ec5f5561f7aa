import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseScrapeList } from './scrape-list.ts';

const lists: [title: string, text: string, message: RegExp][] = [
  ['another scheme', 'ftp://a/metrics', /must be http:\/\/host:port\/metrics or NAME=.*got "ftp:\/\/a\/metrics"/],
  ['no address', 'vllm-0', /a server must be/],
  ['a password', 'http://a:b@c/metrics', /a server must be/],
  ['a name twice', 'a=http://b/metrics,a=http://c/metrics', /"a" must name one server, got several/],
  [
    'the address of credentials',
    'http://169.254.169.254/latest',
    /must not have a link-local, .*got "169.254.169.254"/,
  ],
  ['a multicast address', 'gpu=http://[ff02::1]:8000/metrics', /link-local, multicast, .*got "ff02::1"/],
  ['too many', 'http://a/metrics,'.repeat(4097), /at most 4096 servers/],
];
for (const [title, text, message] of lists)
  test(`parseScrapeList() refuses ${title}`, () => assert.throws(() => parseScrapeList(text), message));
