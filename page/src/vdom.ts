// The page as a function of the state: trees of plain objects, of which only the differences reach the document, so
// that focus, selection and unfinished notes survive updates every second. Foreign text never becomes markup.

export type Child = Node_ | string | number | null | undefined | false;
type Props = Record<string, unknown> & {
  key?: string;
  /** CSS properties, set through the object model, because a strict policy forbids style attributes. */
  css?: Record<string, string>;
};

export interface Node_ {
  tag: string;
  props: Props;
  children: Child[];
  /** An element that other code fills (a chart): put in place and never inspected. */
  own?: HTMLElement;
}

export function h(tag: string, props: Props = {}, ...children: (Child | Child[])[]): Node_ {
  return { tag, props, children: children.flat() };
}

export function mount(element: HTMLElement, key: string): Node_ {
  return { tag: "", props: { key }, children: [], own: element };
}

interface Placed {
  node: Node_ | string;
  dom: Node;
}

const placed = new WeakMap<Node, Placed[]>();

function setProps(element: HTMLElement, before: Props, after: Props): void {
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
    if (name === "key" || before[name] === after[name]) continue;
    const value = after[name];
    if (name === "css") {
      for (const [property, text] of Object.entries((value ?? {}) as Record<string, string>))
        if ((before.css ?? {})[property] !== text) element.style.setProperty(property, text);
    } else if (name.startsWith("on")) {
      (element as unknown as Record<string, unknown>)[name] = value ?? null;
    } else if (value === undefined || value === null || value === false) {
      element.removeAttribute(name);
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
}

function create(node: Node_ | string): Node {
  if (typeof node === "string") return document.createTextNode(node);
  if (node.own) return node.own;
  const element = document.createElement(node.tag);
  setProps(element, {}, node.props);
  render(element, node.children);
  return element;
}

/** Whether `a` can become `b` in place. */
function same(a: Node_ | string, b: Node_ | string): boolean {
  if (typeof a === "string" || typeof b === "string") return typeof a === typeof b;
  return a.tag === b.tag && a.props.key === b.props.key && a.own === b.own;
}

function update(at: Placed, node: Node_ | string): void {
  if (typeof node === "string") {
    if (node !== at.node) at.dom.nodeValue = node;
  } else if (!node.own) {
    setProps(at.dom as HTMLElement, (at.node as Node_).props, node.props);
    render(at.dom, node.children);
  }
  at.node = node;
}

/**
 * Makes `children` the children of `parent`; earlier ones are changed in place if possible. Give a key to a child that
 * comes and goes among others with its tag: otherwise another one takes its element, and a moved one loses the focus.
 */
export function render(parent: Node, children: Child[]): void {
  const next = children.filter((c) => c !== null && c !== undefined && c !== false && c !== "")
    .map((c) => (typeof c === "number" ? String(c) : (c as Node_ | string)));
  const old = [...(placed.get(parent) ?? [])];
  const now = next.map((node): Placed => {
    const i = old.findIndex((p) => same(p.node, node));
    if (i < 0) return { node, dom: create(node) };
    const [found] = old.splice(i, 1);
    update(found!, node);
    return found!;
  });
  for (const gone of old) parent.removeChild(gone.dom);
  now.forEach((p, i) => {
    const there = parent.childNodes[i] ?? null;
    if (there !== p.dom) parent.insertBefore(p.dom, there);
  });
  placed.set(parent, now);
}
