// What scripts that are translated from Python run on: its values and its arithmetic.
// Whole numbers are BigInt and stay exact; floats are Number. See python-texts.js for
// text, and readerkit/render/javascript for what translates.
"use strict";

const readerkitPython = (() => {
  const $ = {};
  const ours = (x) => x !== null && typeof x === "object" && !Array.isArray(x);

  // --- errors: those of Python, by their names ---

  $.Exception = class extends Error {};
  const kinds = {
    ArithmeticError: "Exception",
    AssertionError: "Exception",
    KeyError: "Exception",
    MemoryError: "Exception",
    RecursionError: "Exception",
    SyntaxError: "Exception",
    TypeError: "Exception",
    ValueError: "Exception",
    OverflowError: "ArithmeticError",
    ZeroDivisionError: "ArithmeticError",
  };
  for (const [name, parent] of Object.entries(kinds)) $[name] = class extends $[parent] {};
  const noZero = (by) => {
    if (!by) throw new $.ZeroDivisionError("division by zero");
    return by;
  };
  $.caught = (error, kind) =>
    [kind].flat().some((each) => error instanceof each);

  // --- keys: equal values are one key, as in Python ---

  const numbers = new WeakMap();
  let counted = 0;
  const part = (x) => {
    if (typeof x !== "function" && (typeof x !== "object" || x === null)) return `${typeof x === "string" ? "s" : ""}${key(x)}`;
    const made = key(x);
    if (typeof made === "string") return made;
    if (!numbers.has(x)) numbers.set(x, (counted += 1));
    return `@${numbers.get(x)}`;
  };
  const spelt = (mark, parts) => `\u0001${mark}${Array.from(parts, part).join("\u0002")}\u0003`;
  const key = (x) => {
    if (typeof x === "boolean") return BigInt(x);
    if (typeof x === "number" && Number.isInteger(x)) return BigInt(x);
    if (Array.isArray(x) || x instanceof $.NamedTuple) return spelt("", x);
    if (x instanceof PySet) return spelt("set", [...x.all.keys()].map(String).sort());
    if (ours(x) && x.constructor.$f) {
      return (x.$key ??= spelt(x.constructor.name, x.constructor.$f.map((each) => x[each])));
    }
    return x;
  };

  class Dict {
    constructor(pairs = []) {
      this.all = new Map();
      for (const [name, value] of pairs) this.put(name, value);
    }
    put(name, value) {
      const known = this.all.get(key(name));
      if (known) known[1] = value;
      else this.all.set(key(name), [name, value]);
    }
    __getitem__(name) {
      const found = this.all.get(key(name));
      if (!found) throw new $.KeyError($.repr(name));
      return found[1];
    }
    *[Symbol.iterator]() {
      for (const [name] of this.all.values()) yield name;
    }
    keys() { return new PySet(this); }
    values() { return Array.from(this.all.values(), (each) => each[1]); }
    items() { return [...this.all.values()]; }
    has(name) { return this.all.has(key(name)); }
    get(name, other = null) { return this.has(name) ? this.__getitem__(name) : other; }
    setdefault(name, value = null) {
      if (!this.has(name)) this.put(name, value);
      return this.__getitem__(name);
    }
    pop(name, other) {
      const found = this.get(name, other);
      this.all.delete(key(name));
      return found;
    }
    update(other) { for (const each of $.items(other)) this.put(...each); }
    get size() { return this.all.size; }
  }
  class PySet {
    constructor(values = []) {
      this.all = new Map();
      for (const each of values) this.add(each);
    }
    add(value) { if (!this.has(value)) this.all.set(key(value), value); }
    has(value) { return this.all.has(key(value)); }
    [Symbol.iterator]() { return this.all.values(); }
    intersection(other) { return $.bitand(this, new PySet(other)); }
    union(other) { return $.bitor(this, new PySet(other)); }
    get size() { return this.all.size; }
  }
  class Deque {
    constructor(values = []) { this.list = [...values]; this.at = 0; }
    get size() { return this.list.length - this.at; }
    __getitem__(index) { return this.list[this.at + Number(index)]; }
    popleft() { return this.list[this.at++]; }
    append(value) { this.list.push(value); }
    [Symbol.iterator]() { return this.list.slice(this.at)[Symbol.iterator](); }
  }
  $.dict = (pairs = []) => new Dict(ours(pairs) && pairs instanceof Dict ? pairs.items() : pairs);
  $.dict.fromkeys = (names, value = null) => new Dict(Array.from(names, (each) => [each, value]));
  $.set = $.frozenset = (values) => new PySet(values);
  $.deque = (values) => new Deque(values);
  $.items = (dict) => (dict instanceof Dict ? dict.items() : [...dict]);

  // --- numbers ---

  class Fraction {
    constructor(top, bottom) { this.numerator = top; this.denominator = bottom; }
    __add__(o) { return other(o, (f) => exact(this.numerator * f.denominator + f.numerator * this.denominator, this.denominator * f.denominator), (x) => $.float(this) + x); }
    __radd__(o) { return $.add(this, o); }
    __sub__(o) { return $.add(this, $.neg(o)); }
    __rsub__(o) { return $.add($.neg(this), o); }
    __mul__(o) { return other(o, (f) => exact(this.numerator * f.numerator, this.denominator * f.denominator), (x) => $.float(this) * x); }
    __rmul__(o) { return $.mul(this, o); }
    __truediv__(o) { return other(o, (f) => exact(this.numerator * f.denominator, this.denominator * f.numerator), (x) => $.float(this) / noZero(x)); }
    __rtruediv__(o) { return typeof o === "number" ? o / $.float(this) : $.div(asFraction(o), this); }
    __floordiv__(o) { const q = $.div(this, o); return down(q.numerator, q.denominator); }
    __rfloordiv__(o) { return $.floordiv(asFraction(o), this); }
    __neg__() { return new Fraction(-this.numerator, this.denominator); }
    __pow__(n) { return n < 0n ? exact(this.denominator ** -n, this.numerator ** -n) : exact(this.numerator ** n, this.denominator ** n); }
    __eq__(o) { return isNumber(o) && $.b(!compare(this, o)); }
    __lt__(o) { return compare(this, o) < 0; }
    __bool__() { return this.numerator !== 0n; }
    __float__() { return ratio(this.numerator, this.denominator); }
    __str__() { return this.denominator === 1n ? `${this.numerator}` : `${this.numerator}/${this.denominator}`; }
  }
  const gcd = (a, b) => { while (b) [a, b] = [b, a % b]; return a < 0n ? -a : a; };
  const exact = (top, bottom) => {
    noZero(bottom);
    const shared = gcd(top, bottom) * (bottom < 0n ? -1n : 1n);
    return new Fraction(top / shared, bottom / shared);
  };
  const isNumber = (x) => ["bigint", "number", "boolean"].includes(typeof x) || x instanceof Fraction;
  const asFraction = (x) => (x instanceof Fraction ? x : typeof x === "number" ? exact(...$.as_ratio(x)) : new Fraction(BigInt(x), 1n));
  const other = (o, whole, float) => (typeof o === "number" ? float(o) : o instanceof Fraction || typeof o === "bigint" || typeof o === "boolean" ? whole(asFraction(o)) : void 0);
  const compare = (a, b) => {
    if ([a, b].some((x) => typeof x === "number" && !Number.isFinite(x))) return $.float(a) - $.float(b);
    const [one, two] = [asFraction(a), asFraction(b)];
    const left = one.numerator * two.denominator - two.numerator * one.denominator;
    return left < 0n ? -1 : left > 0n ? 1 : 0;
  };
  const down = (a, b) => { const q = a / noZero(b); return a % b && a < 0n !== b < 0n ? q - 1n : q; };
  const SAFE = 2n ** 53n;
  const bits = (n) => BigInt(n.toString(2).length);
  // Rounded once, to the nearest float, as Python divides whole numbers.
  const ratio = (a, b) => {
    noZero(b);
    if (-SAFE <= a && a <= SAFE && -SAFE <= b && b <= SAFE) return Number(a) / Number(b);
    const negative = a < 0n !== b < 0n;
    const [top, bottom] = [a < 0n ? -a : a, b < 0n ? -b : b];
    const shift = 66n - bits(top) + bits(bottom);
    const [wide, by] = shift > 0n ? [top << shift, bottom] : [top, bottom << -shift];
    const found = Number(((wide / by) << 1n) | (wide % by ? 1n : 0n)) * 2 ** Number(-shift - 1n);
    return negative ? -found : found;
  };
  // A float as whole numbers: it is their quotient, exactly.
  $.as_ratio = (x) => {
    let power = 0;
    while (!Number.isInteger(x)) { x *= 2; power += 1; }
    return [BigInt(x), 2n ** BigInt(power)];
  };
  $.Fraction = (top = 0n, bottom = 1n) => $.div_exact(asFraction(top), asFraction(bottom));
  $.div_exact = (a, b) => exact(a.numerator * b.denominator, a.denominator * b.numerator);
  $.Fraction.is = Fraction;

  const level = (x) => (typeof x === "boolean" ? BigInt(x) : x);
  const operator = (name, big, float, more) => {
    const [own, reversed] = [`__${name}__`, `__r${name}__`];
    return (a, b) => {
      const [s, t] = [typeof a, typeof b];
      if (s === "bigint" && t === "bigint") return big(a, b);
      if (s === "number" && t === "number") return float(a, b);
      if ((s === "bigint" && t === "number") || (s === "number" && t === "bigint")) return float(Number(a), Number(b));
      if (s === "boolean" || t === "boolean") {
        if (s !== "string" && t !== "string") return $[name === "truediv" ? "div" : name](level(a), level(b));
      }
      let found = ours(a) && a[own] ? a[own](b) : void 0;
      if (found === void 0 && ours(b) && b[reversed]) found = b[reversed](a);
      if (found === void 0 && more) found = more(a, b);
      if (found === void 0) throw new $.TypeError(`${name}: ${$.str(a)}, ${$.str(b)}`);
      return found;
    };
  };
  const times = (x, n) => (typeof x === "string" ? x.repeat(Math.max(0, Number(n))) : Array.from({ length: Math.max(0, Number(n)) }, () => x).flat());
  $.add = operator("add", (a, b) => a + b, (a, b) => a + b, (a, b) => (typeof a === "string" && typeof b === "string" ? a + b : Array.isArray(a) ? [...a, ...b] : void 0));
  $.sub = operator("sub", (a, b) => a - b, (a, b) => a - b, (a, b) => (a instanceof PySet ? new PySet([...a].filter((each) => !b.has(each))) : void 0));
  $.mul = operator("mul", (a, b) => a * b, (a, b) => a * b, (a, b) => (typeof a === "bigint" || typeof a === "boolean" ? times(b, a) : times(a, b)));
  $.div = operator("truediv", ratio, (a, b) => a / noZero(b));
  $.floordiv = operator("floordiv", down, (a, b) => Math.floor(a / noZero(b)));
  $.mod = operator("mod", (a, b) => a - b * down(a, b), (a, b) => a - b * Math.floor(a / noZero(b)));
  $.pow = operator("pow", (a, b) => (b < 0n ? 1 / Number(a ** -b) : a ** b), (a, b) => a ** b);
  $.bitor = operator("or", (a, b) => a | b, null, (a, b) => (a instanceof Dict ? new Dict([...a.items(), ...b.items()]) : new PySet([...a, ...b])));
  $.bitand = operator("and", (a, b) => a & b, null, (a, b) => new PySet([...a].filter((each) => b.has(each))));
  $.bitxor = operator("xor", (a, b) => a ^ b, null);
  $.neg = (x) => (ours(x) ? x.__neg__() : -level(x));
  $.iadd = (a, b) => { if (!Array.isArray(a)) return $.add(a, b); a.push(...b); return a; };
  $.operator = { add: $.add, sub: $.sub, mul: $.mul, floordiv: $.floordiv, mod: $.mod };
  $.abs = (x) => ($.lt(x, 0n) ? $.neg(x) : x);
  $.divmod = (a, b) => [$.floordiv(a, b), $.mod(a, b)];

  // --- comparing ---

  const plain = (x) => typeof x === "bigint" || typeof x === "number" || typeof x === "boolean";
  $.eq = (a, b) => {
    if (a === b) return true;
    if (plain(a) && plain(b)) return level(a) == level(b);
    if (ours(a) && a.__eq__) return a.__eq__(b);
    if (ours(b) && b.__eq__) return b.__eq__(a);
    const lists = [a, b].map((x) => (Array.isArray(x) || x instanceof $.NamedTuple ? [...x] : null));
    if (lists[0] && lists[1]) return lists[0].length === lists[1].length && lists[0].every((x, at) => $.eq(x, lists[1][at]));
    if (!ours(a) || !ours(b)) return false;
    if (a instanceof PySet && b instanceof PySet) return a.size === b.size && [...a].every((each) => b.has(each));
    return a.constructor === b.constructor && !!a.constructor.$f && a.constructor.$f.every((each) => $.eq(a[each], b[each]));
  };
  $.lt = (a, b) => {
    if (plain(a) && plain(b)) return level(a) < level(b);
    if (typeof a === "string") return a < b;
    if (ours(a) && a.__lt__) return a.__lt__(b);
    if (ours(b) && b.__lt__) return !b.__lt__(a) && !$.eq(b, a);
    const [one, two] = [[...a], [...b]];
    const at = one.findIndex((each, index) => index >= two.length || !$.eq(each, two[index]));
    return at < 0 ? one.length < two.length : at < two.length && $.lt(one[at], two[at]);
  };
  $.le = (a, b) => (plain(a) && plain(b) ? level(a) <= level(b) : $.lt(a, b) || $.eq(a, b));
  $.b = (x) => {
    if (!ours(x)) return Array.isArray(x) ? x.length > 0 : Boolean(x);
    if (x.__bool__) return x.__bool__();
    return x.size === void 0 || x.size > 0;
  };
  $.and = (first, ...rest) => rest.reduce((found, next) => ($.b(found) ? next() : found), first);
  $.or = (first, ...rest) => rest.reduce((found, next) => ($.b(found) ? found : next()), first);

  // --- what has parts ---

  const place = (list, index) => {
    const at = Number(index.__index__ ? index.__index__() : index);
    return at < 0 ? list.length + at : at;
  };
  $.at = (of, index) => {
    if (ours(of) && of.__getitem__) return of.__getitem__(index);
    const found = of[place(of, index)];
    if (found === void 0) throw new $.KeyError($.str(index));
    return found;
  };
  $.put = (of, index, value) => { if (of instanceof Dict) of.put(index, value); else of[place(of, index)] = value; };
  $.take = (of, index) => { if (of instanceof Dict) of.pop(index); else of.splice(place(of, index), 1); };
  $.slice = (of, first, last) => (typeof of === "string" || Array.isArray(of) ? of : Array.from(of)).slice(first === null ? 0 : Number(first), last === null ? void 0 : Number(last));
  $.has = (of, value) => {
    if (typeof of === "string") return of.includes(value);
    if (of instanceof Dict || of instanceof PySet) return of.has(value);
    for (const each of of) if ($.eq(each, value)) return true;
    return false;
  };
  $.len = (x) => BigInt(ours(x) && x.size !== void 0 ? x.size : ours(x) ? [...x].length : x.length);
  $.list = $.tuple = (values = []) => [...values];
  $.range = (...ends) => {
    const [first, last, step] = ends.length === 1 ? [0, ends[0], 1] : [...ends, 1];
    const found = [];
    const [from, to, by] = [first, last, step].map((x) => Number(ours(x) ? x.__index__() : x));
    for (let at = from; by > 0 ? at < to : at > to; at += by) found.push(BigInt(at));
    return found;
  };
  $.enumerate = (values, first = 0n) => Array.from(values, (each, at) => [BigInt(at) + first, each]);
  $.zip = (...lists) => {
    const all = lists.map((each) => [...each]);
    return Array.from({ length: Math.min(...all.map((each) => each.length)) }, (_, at) => all.map((each) => each[at]));
  };
  $.map = (make, ...lists) => $.zip(...lists).map((each) => make(...each));
  $.filter = (test, values) => [...values].filter((each) => $.b(test === null ? each : test(each)));
  $.reversed = (values) => [...values].reverse();
  $.any = (values) => [...values].some($.b);
  $.all = (values) => [...values].every($.b);
  $.sum = (values, first = 0n) => { let found = first; for (const each of values) found = $.add(found, each); return found; };
  const raw = (make, bare) => { make.$raw = bare; return make; };
  $.zip = raw($.zip, (lists) => $.zip(...lists));
  const order = (by) => (a, b) => { const [one, two] = [by(a), by(b)]; return $.lt(one, two) ? -1 : $.lt(two, one) ? 1 : 0; };
  const same = (x) => x;
  $.sorted = raw((values) => [...values].sort(order(same)), ([values], named) => {
    const given = new Map(named);
    const found = [...values].sort(order(given.get("key") ?? same));
    return $.b(given.get("reverse") ?? false) ? found.reverse() : found;
  });
  const best = (better) => (given, named) => {
    const [by, values] = [new Map(named).get("key") ?? same, given.length === 1 ? given[0] : given];
    let found, least;
    for (const each of values) {
      const one = by(each);
      if (found === void 0 || better(one, least)) [found, least] = [each, one];
    }
    return found === void 0 ? new Map(named).get("default") : found;
  };
  $.max = raw((...given) => $.max.$raw(given, []), best((a, b) => $.lt(b, a)));
  $.min = raw((...given) => $.min.$raw(given, []), best($.lt));
  $.accumulate = (values) => { let sum; return Array.from(values, (each) => (sum = sum === void 0 ? each : $.add(sum, each))); };
  $.iter = (values) => values[Symbol.iterator]();
  $.next = (from, other) => { const found = from.next(); return found.done ? other : found.value; };
  Object.assign($, { Dict, PySet, raw, ours, same, key, part, Fraction_: Fraction, asFraction, ratio, down });
  return $;
})();
