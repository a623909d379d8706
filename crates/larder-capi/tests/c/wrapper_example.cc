// The example in C++ of docs/c.md.
#include <cstdio>
#include <larder.hpp>

int main() {
    using namespace larderpp;
    const world shop;
    table stock = shop.table("stock", options().ordered_set());
    stock.put("apple", 3);
    stock.put("pear", 12);
    stock.insert(row("quince", 1, atom("yellow")));

    if (stock.add("apple", 10) != 13) return 1;
    if (stock.get<int>("pear") != 12 || stock.get<int>("plum")) return 1;
    for (view fruit : stock.range("b", std::nullopt)) std::printf("%s\n", fruit.text().c_str());

    // An apple becomes a pear at one instant, and nobody sees it half done.
    transact({stock}, [](const transaction &own) {
        own[0].add("apple", -1);
        own[0].add("pear", 1);
    });

    try {
        stock.get<std::string>("pear");
        return 1;
    } catch (const error &wrong) {
        std::printf("%s\n", wrong.what());
    }
    std::puts("ok");
}
