/** Encodes the settings and the window that every connection announces first: limits of streams, headers and data in flight. */
import { BufferPool } from '../budget/buffer-pool.ts';
import { FrameWriter } from '../frames/frame-writer.ts';
import { DEFAULT_WINDOW, SETTING, STREAM_WINDOW } from '../frames/frames.ts';
import { MAX_LIST_BYTES } from '../hpack/hpack-decoder.ts';
import { CONNECTION_WINDOW } from './receive-window.ts';
import { MAX_STREAMS } from './stream-table.ts';

/** Encoded once: a client that opens many connections and says nothing should cost little. */
export const GREETING = encodeGreeting();

function encodeGreeting(): Buffer {
  const writer = new FrameWriter(new BufferPool());
  writer.settings([
    [SETTING.maxConcurrentStreams, MAX_STREAMS],
    [SETTING.initialWindowSize, STREAM_WINDOW],
    [SETTING.maxHeaderListSize, MAX_LIST_BYTES],
  ]);
  writer.windowUpdate(0, CONNECTION_WINDOW - DEFAULT_WINDOW);
  return writer.copy();
}
