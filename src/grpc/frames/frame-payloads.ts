/**
 * Checks the payload of each type of HTTP/2 frame by itself: padding, length, settings, priority (RFC 9113 §6). Their effects
 * on a connection are in `http2/incoming-frames.ts`.
 */
import { ConnectionError, DEFAULT_MAX_FRAME_BYTES, ERROR, FLAG, MAX_WINDOW, SETTING } from './frames.ts';

export type Setting = readonly [setting: number, value: number];

export function withoutPadding(flags: number, payload: Buffer): Buffer {
  if ((flags & FLAG.padded) === 0) return payload;
  const padding = payload[0];
  if (padding === undefined || padding >= payload.length)
    throw new ConnectionError(ERROR.protocol, 'the padding is longer than the frame');
  return payload.subarray(1, payload.length - padding);
}

export function checkPriority(streamId: number, payload: Buffer): void {
  if (streamId === 0) throw new ConnectionError(ERROR.protocol, 'a priority belongs to a stream');
  if (payload.length !== 5) throw new ConnectionError(ERROR.frameSize, 'a priority has 5 bytes');
  checkDependency(streamId, payload);
}

/** RFC 7540 §5.3.1: the only check of priorities, which some clients still send and the server ignores (RFC 9113 §5.3.2). */
export function checkDependency(streamId: number, priority: Buffer): void {
  if ((priority.readUInt32BE(0) & MAX_WINDOW) === streamId)
    throw new ConnectionError(ERROR.protocol, 'a stream depends on itself');
}

export function checkReset(payload: Buffer): void {
  if (payload.length !== 4) throw new ConnectionError(ERROR.frameSize, 'a reset has 4 bytes');
}

export function checkPing(streamId: number, payload: Buffer): void {
  if (streamId !== 0) throw new ConnectionError(ERROR.protocol, 'a ping belongs to the connection');
  if (payload.length !== 8) throw new ConnectionError(ERROR.frameSize, 'a ping has 8 bytes');
}

export function checkGoAway(streamId: number, payload: Buffer): void {
  if (streamId !== 0) throw new ConnectionError(ERROR.protocol, 'going away belongs to the connection');
  if (payload.length < 8) throw new ConnectionError(ERROR.frameSize, 'going away has 8 bytes at least');
}

/** Returns settings, and throws when a known one is out of its range. Returns undefined when the frame only acknowledges ours. */
export function readSettings(flags: number, streamId: number, payload: Buffer): readonly Setting[] | undefined {
  if (streamId !== 0) throw new ConnectionError(ERROR.protocol, 'settings belong to the connection');
  if ((flags & FLAG.ack) !== 0) {
    if (payload.length > 0) throw new ConnectionError(ERROR.frameSize, 'an acknowledgement is empty');
    return undefined;
  }
  if (payload.length % 6 !== 0) throw new ConnectionError(ERROR.frameSize, 'settings have 6 bytes each');
  return Array.from({ length: payload.length / 6 }, (_, i) => {
    const setting = payload.readUInt16BE(6 * i);
    const value = payload.readUInt32BE(6 * i + 2);
    checkSetting(setting, value);
    return [setting, value];
  });
}

function checkSetting(setting: number, value: number): void {
  if (setting === SETTING.initialWindowSize && value > MAX_WINDOW)
    throw new ConnectionError(ERROR.flowControl, 'a window is too large');
  if (setting === SETTING.maxFrameSize && (value < DEFAULT_MAX_FRAME_BYTES || value > 0xff_ffff))
    throw new ConnectionError(ERROR.protocol, 'the largest frame is out of range');
  if (setting === SETTING.enablePush && value > 1) throw new ConnectionError(ERROR.protocol, 'push is 0 or 1');
}

export function readWindowIncrement(payload: Buffer): number {
  if (payload.length !== 4) throw new ConnectionError(ERROR.frameSize, 'a window update has 4 bytes');
  return payload.readUInt32BE(0) & MAX_WINDOW;
}
