/**
 * Encodes a model as one file with a checksum, and decodes it; refuses a damaged or cut-off file.
 *
 *   "TRVMODEL" · format version (u32) · length of the header (u32) · header (JSON, UTF-8) · for each slot its forests
 *   (`gbdt/forest-format.ts`) and imported trees (`gbdt/general/general-format.ts`) · SHA-256 of all bytes before it (32 bytes).
 *   Numbers are little-endian.
 *
 * The header names the features, so that a reader knows whether it still computes all that the trees use.
 */
import { createHash } from 'node:crypto';
import { describeError, Failure } from '../../errors.ts';
import { decodeForests, encodeForests } from '../gbdt/forest-format.ts';
import { decodeGeneralForest, encodeGeneralForest } from '../gbdt/general/general-format.ts';
import type { Forest } from '../gbdt/tree.ts';
import { restorePhysics, savePhysics } from '../physics/saved-physics.ts';
import { PREDICTION_TARGETS, type PredictionTarget } from '../schema/observation-table.ts';
import type { Calibration } from './calibration.ts';
import { FEATURE_NAMES } from './features.ts';
import type { ImportedTrees } from './imported-trees.ts';
import type { LatencyModel, SlotModels, TimeModel } from './model.ts';
import {
  checkHeader,
  type ModelHeader,
  type OffsetsHeader,
  type SlotHeader,
  type TargetHeader,
} from './model-header.ts';
import { NO_OFFSETS, type ServerOffsets } from './server-offsets.ts';

const MAGIC = 'TRVMODEL';
/** Format 2 adds `treeBaseMs`: trees correct physics plus this. Files of format 1 lack it, and are still read. */
const FORMAT_VERSION = 2;
const HEADER_AT = 16;
const CHECKSUM_BYTES = 32;

export function encodeModel(model: LatencyModel): Uint8Array {
  const slots: readonly [string | null, SlotModels][] = [[null, model.pooled], ...model.slots];
  const forests = slots.map(([, slot]) => encodeSlotForests(slot));
  const imported = slots.map(([, slot]) => PREDICTION_TARGETS.map((target) => encodeImported(slot[target])));
  const header: ModelHeader = {
    id: model.id,
    statistic: model.statistic,
    ...(model.parameters !== undefined && { parameters: model.parameters }),
    features: FEATURE_NAMES,
    slots: slots.map(([podType, slot], i) => describeSlot(podType, slot, forests[i]!.length)),
  };
  return assemble(
    header,
    slots.flatMap((_, i) => [forests[i]!, ...imported[i]!]),
  );
}

function assemble(header: ModelHeader, parts: readonly Uint8Array[]): Uint8Array {
  const text = Buffer.from(JSON.stringify(header));
  const start = Buffer.alloc(HEADER_AT);
  start.write(MAGIC, 'latin1');
  start.writeUInt32LE(FORMAT_VERSION, 8);
  start.writeUInt32LE(text.length, 12);
  const content = Buffer.concat([start, text, ...parts]);
  return Buffer.concat([content, createHash('sha256').update(content).digest()]);
}

/** Returns the same model under another id; its trees are copied without decoding. */
export function renameModel(file: Uint8Array, id: string): Uint8Array {
  const { header, rest } = openFile(file);
  return assemble({ ...header, id }, [rest]);
}

function describeSlot(podType: string | null, slot: SlotModels, forestBytes: number): SlotHeader {
  const targets = Object.fromEntries(Object.entries(slot).map(([target, model]) => [target, describeTarget(model)]));
  return { podType, targets, ...describeTreeOffsets(slot), forestBytes };
}

/** Trees take the offsets of both targets as inputs: when an import replaces one target, they keep the offsets that it had. */
function describeTreeOffsets(slot: SlotModels): Pick<SlotHeader, 'treeLevels'> {
  const asked = PREDICTION_TARGETS.map((target) => slot[target]).find(
    (model) => model?.forest !== undefined,
  )?.slotOffsets;
  if (asked === undefined) return {};
  const lost = PREDICTION_TARGETS.filter(
    (target) => asked[target].servers.size > 0 && asked[target] !== slot[target]?.offsets,
  );
  if (lost.length === 0) return {};
  return { treeLevels: Object.fromEntries(lost.map((target) => [target, describeOffsets(asked[target])])) };
}

/** The file calls offsets `levels`, and those by server name `kinds`. */
function describeOffsets({ servers, serverNames, podTypes }: ServerOffsets): OffsetsHeader {
  return {
    servers: Object.fromEntries(servers),
    kinds: Object.fromEntries(serverNames),
    podTypes: Object.fromEntries(podTypes),
  };
}

function describeTarget(model: TimeModel): TargetHeader {
  return {
    rows: model.rows,
    ...(model.offsets.servers.size > 0 && { levels: describeOffsets(model.offsets) }),
    physics: savePhysics(model.physics),
    hasForest: model.forest !== undefined,
    ...(model.treeBaseMs !== 0 && { treeBaseMs: model.treeBaseMs }),
    forestShare: model.forestShare,
    calibration: {
      edges: [...model.calibration.edges],
      quantiles: [...model.calibration.quantiles],
      logMeans: [...model.calibration.logMeans],
      rows: model.calibration.rows,
    },
    validation: model.validation ?? null,
    ...(model.imported === undefined ? {} : { imported: describeImported(model.imported) }),
  };
}

function describeImported({ forest, ...described }: ImportedTrees): NonNullable<TargetHeader['imported']> {
  return { ...described, bytes: encodeGeneralForest(forest).length };
}

function encodeImported(model: TimeModel | undefined): Uint8Array {
  return model?.imported === undefined ? new Uint8Array(0) : encodeGeneralForest(model.imported.forest);
}

/** The trees of both targets of a slot share one binning, and so one encoding. */
function encodeSlotForests(slot: SlotModels): Uint8Array {
  const forests = PREDICTION_TARGETS.map((target) => slot[target]?.forest).filter((forest) => forest !== undefined);
  return forests.length === 0 ? new Uint8Array(0) : encodeForests(forests);
}

/** The checksum, with which a file ends, in hexadecimal. It also tells files apart. */
export function checksumOf(file: Uint8Array): string {
  return Buffer.from(file.subarray(-CHECKSUM_BYTES)).toString('hex');
}

/** Throws `invalid` if the file is not a model, is damaged, or needs features that are not computed here. */
export function decodeModel(file: Uint8Array): LatencyModel {
  const opened = openFile(file);
  try {
    return restoreModel(opened);
  } catch (error) {
    throw refuse(describeError(error));
  }
}

interface OpenedFile {
  readonly header: ModelHeader;
  /** The bytes between the header and the checksum. */
  readonly rest: Buffer;
}

function openFile(file: Uint8Array): OpenedFile {
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.byteLength);
  if (bytes.length < HEADER_AT + CHECKSUM_BYTES || bytes.toString('latin1', 0, 8) !== MAGIC)
    throw refuse('it is not a model file');
  // Checked before the checksum, so that a later format is reported as such and not as damage.
  const version = bytes.readUInt32LE(8);
  if (version < 1 || version > FORMAT_VERSION)
    throw refuse(`its format is ${version}, this program reads 1 to ${FORMAT_VERSION}`);
  const content = bytes.subarray(0, -CHECKSUM_BYTES);
  if (createHash('sha256').update(content).digest('hex') !== checksumOf(bytes))
    throw refuse('its checksum does not match, the file is damaged');
  const end = HEADER_AT + content.readUInt32LE(12);
  try {
    return { header: readHeader(content.subarray(HEADER_AT, end)), rest: content.subarray(end) };
  } catch (error) {
    throw refuse(describeError(error));
  }
}

function readHeader(bytes: Buffer): ModelHeader {
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString('utf8'));
  } catch {
    throw new RangeError('its header is not JSON');
  }
  return checkHeader(value);
}

function refuse(reason: string): Failure {
  return new Failure('invalid', `Cannot read the model: ${reason}`);
}

function restoreModel({ header, rest }: OpenedFile): LatencyModel {
  let at = 0;
  const slots = header.slots.map((slot): [string | null, SlotModels] => {
    const takeBytes = (length: number): Uint8Array => {
      at += length;
      if (at > rest.length) throw new RangeError('it ends too early');
      return rest.subarray(at - length, at);
    };
    const forests =
      slot.forestBytes === 0 ? [] : placeFeatures(decodeForests(takeBytes(slot.forestBytes)), header.features);
    return [slot.podType, restoreSlot(slot, forests, takeBytes)];
  });
  if (at !== rest.length) throw new RangeError('there is more in it than its header says');
  const [pooled, ...others] = slots;
  const named = others.map(([podType, slot]): [string, SlotModels] => [podType ?? '', slot]);
  const { id, statistic, parameters } = header;
  const withParameters = parameters === undefined ? {} : { parameters };
  return { id, statistic, ...withParameters, pooled: pooled![1], slots: new Map(named) };
}

/** Moves the features of forests, which share one binning, to their positions in this program, which may compute more features. */
function placeFeatures(forests: Forest[], names: readonly string[]): Forest[] {
  const { edges } = forests[0]?.binning ?? { edges: [] };
  if (forests.length > 0 && edges.length !== names.length)
    throw new RangeError('its trees and its header differ in the number of features');
  const binning = { edges: FEATURE_NAMES.map((name) => edges[names.indexOf(name)] ?? new Float32Array(0)) };
  const known: readonly string[] = FEATURE_NAMES;
  const places = names.map((name) => known.indexOf(name));
  return forests.map((forest) => ({ ...forest, binning, features: forest.features.map((f) => places[f]!) }));
}

function restoreSlot(
  { targets, treeLevels }: SlotHeader,
  forests: Forest[],
  takeBytes: (length: number) => Uint8Array,
): SlotModels {
  const slot: Partial<Record<PredictionTarget, TimeModel>> = {};
  const offsets = { ttft: restoreOffsets(targets.ttft?.levels), tpot: restoreOffsets(targets.tpot?.levels) };
  const slotOffsets = {
    ttft: treeLevels?.ttft ? restoreOffsets(treeLevels.ttft) : offsets.ttft,
    tpot: treeLevels?.tpot ? restoreOffsets(treeLevels.tpot) : offsets.tpot,
  };
  for (const target of PREDICTION_TARGETS) {
    const header = targets[target];
    if (header === undefined) continue;
    const restored = restoreTarget(target, header, header.hasForest ? forests.shift() : undefined);
    const learned = { ...restored, offsets: offsets[target], slotOffsets };
    slot[target] =
      header.imported === undefined
        ? learned
        : { ...learned, imported: restoreImported(header.imported, takeBytes(header.imported.bytes)) };
  }
  if (forests.length > 0) throw new RangeError('it has more forests than its header says');
  return slot;
}

function restoreTarget(
  target: PredictionTarget,
  header: TargetHeader,
  forest: Forest | undefined,
): Omit<TimeModel, 'offsets'> {
  if (forest === undefined && header.hasForest) throw new RangeError('it lacks a forest that its header lists');
  return {
    rows: header.rows,
    physics: restorePhysics(target, header.physics),
    forest,
    treeBaseMs: header.treeBaseMs ?? 0,
    forestShare: header.forestShare,
    calibration: restoreCalibration(header.calibration),
    validation: header.validation ?? undefined,
  };
}

function restoreImported(header: NonNullable<TargetHeader['imported']>, bytes: Uint8Array): ImportedTrees {
  const { library, sources, transform, unit } = header;
  const forest = decodeGeneralForest(bytes);
  if (sources.length !== forest.featureCount)
    throw new RangeError('its imported trees and its header differ in the number of features');
  return { library, sources, transform, unit, forest };
}

function restoreOffsets(levels: OffsetsHeader | undefined): ServerOffsets {
  if (levels === undefined) return NO_OFFSETS;
  const { servers, kinds, podTypes } = levels;
  return {
    servers: new Map(Object.entries(servers)),
    serverNames: new Map(Object.entries(kinds ?? {})),
    podTypes: new Map(Object.entries(podTypes)),
  };
}

function restoreCalibration(header: TargetHeader['calibration']): Calibration {
  return {
    edges: Float64Array.from(header.edges),
    quantiles: Float64Array.from(header.quantiles),
    logMeans: Float64Array.from(header.logMeans),
    rows: header.rows,
  };
}
