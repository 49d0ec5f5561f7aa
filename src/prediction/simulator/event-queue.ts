/** Orders the events of a simulation by time, in a binary heap. */
export interface EventQueue<T> {
  push(atMs: number, event: T): void;
  pop(): { readonly atMs: number; readonly event: T } | undefined;
  /** Returns when the next event is due; undefined when the queue is empty. */
  nextMs(): number | undefined;
}

interface Entry<T> {
  readonly atMs: number;
  readonly order: number;
  readonly event: T;
}

export function createEventQueue<T>(): EventQueue<T> {
  const heap: Entry<T>[] = [];
  let order = 0;
  const isBefore = (a: Entry<T>, b: Entry<T>) => a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);

  function siftUp(start: number): void {
    let child = start;
    while (child > 0) {
      const parent = (child - 1) >> 1;
      if (!isBefore(heap[child]!, heap[parent]!)) return;
      [heap[child], heap[parent]] = [heap[parent]!, heap[child]!];
      child = parent;
    }
  }

  function siftDown(): void {
    let parent = 0;
    while (true) {
      const left = 2 * parent + 1;
      const right = left + 1;
      let first = parent;
      if (left < heap.length && isBefore(heap[left]!, heap[first]!)) first = left;
      if (right < heap.length && isBefore(heap[right]!, heap[first]!)) first = right;
      if (first === parent) return;
      [heap[first], heap[parent]] = [heap[parent]!, heap[first]!];
      parent = first;
    }
  }

  return {
    nextMs: () => heap[0]?.atMs,
    push(atMs, event) {
      heap.push({ atMs, order: order++, event });
      siftUp(heap.length - 1);
    },
    pop() {
      const [top] = heap;
      const last = heap.pop();
      if (top === undefined || last === undefined) return undefined;
      if (heap.length > 0) {
        heap[0] = last;
        siftDown();
      }
      return top;
    },
  };
}
