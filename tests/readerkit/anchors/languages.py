"""A small source in each language that is read by its tokens."""

C = b"""\
#include <stdio.h>
struct point { int x; int y; };
static int add(int a, int b);
static int add(int a, int b) {
    /* the sum of both */
    return a + b;
}
int *make(int n) {
    if (add(n, 2) > 3) {
        return 0;
    } else {
        add(n,
            4);  // on two lines
    }
    int twice = add(n, n);
    return 0;
}
"""
CPP = b"""\
namespace net {
class Server {
 public:
  explicit Server(int port) : port_(port) {}
  void close();
  template <typename T> T get(const T& key) { return key; }

 private:
  int port_;
};
void Server::close() {
  port_ = 0;
  for (int i = 0; i < 3; i++) {
    get<int>(i);
  }
}
}  // namespace net
enum class Kind { A, B };
int net::run(int n) { return n; }
"""
CUDA = b"""\
template <typename T>
__global__ void scale(T* x, float by, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    x[i] *= by;
  }
}
void launch(float* x, int n) {
  scale<float><<<(n + 255) / 256, 256>>>(x, 2.0f, n);
}
"""
RUST = b"""\
mod net {
    pub struct Server<T> {
        port: T,
    }
    impl<T> Server<T> {
        /// Close it.
        #[inline]
        pub fn close(&mut self, n: usize) -> usize {
            if n > 3 {
                return 0;
            }
            let kept = self.keep(
                n, // how many
                vec![1, 2],
            );
            n + kept
        }
    }
    pub trait Run {
        fn run(&self);
    }
    impl Run for Server<u8> {
        fn run(&self) {}
    }
}
fn main() {
    match load(1) {
        Ok(n) => println!("{n}"),
        Err(_) => (),
    }
}
"""
GO = b"""\
package main

type Server struct {
	port int
}

// Close it.
func (s *Server) Close(n int) error {
	if n > 3 {
		return nil
	}
	go s.run(func() {
		s.port = n
	})
	return fmt.Errorf("port %d", s.port)
}

func Map[K any](keys []K) int { return len(keys) }
"""
JAVASCRIPT = b"""\
export class Server {
  constructor(port) {
    this.port = port;
  }
  close = () => {
    return this.port;
  };
  async run(names) {
    for (const name of names) {
      await this.ask(name, { again: true });
    }
    return null;
  }
}
const twice = (x) => x * 2;
function all(first, ...rest) {
  return [first, ...rest].map(twice);
}
"""
TYPESCRIPT = b"""\
export interface Options {
  port: number;
  run(): void;
}
export class Server<T> implements Options {
  constructor(private port: number) {}
  get<K extends keyof T>(key: K): T[K] | undefined {
    return this.all?.[key];
  }
  static make(): Server<number> {
    return new Server(1);
  }
}
enum Kind {
  A,
  B,
}
type Id = string | number;
namespace tools {
  export const ask = async (id: Id): Promise<Kind> => {
    return Kind.A;
  };
}
"""
TSX = b"""\
export function App({ name }: { name: string }) {
  const shown = name.trim();
  return <div className="app">{shown}</div>;
}
"""
JAVA = b"""\
package x;

public class Server implements Runnable {
  private final int port;

  public Server(int port) {
    this.port = port;
  }

  @Override
  public void run() {
    for (int i = 0; i < port; i++) {
      close(i, "a, b");
    }
  }

  static <T> T id(T given) {
    return given;
  }

  enum Kind { A, B; }
}
"""
SOURCES = {
    "a.c": C,
    "a.cpp": CPP,
    "a.cu": CUDA,
    "a.rs": RUST,
    "a.go": GO,
    "a.js": JAVASCRIPT,
    "a.ts": TYPESCRIPT,
    "a.tsx": TSX,
    "A.java": JAVA,
}
