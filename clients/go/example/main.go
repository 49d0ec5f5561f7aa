// Command example routes made-up requests to a made-up pool: a fast server and a server that takes three times as long.
// It prints how many requests each server got and which model version answered.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"time"

	"google.golang.org/grpc"

	"trivet/router"
)

// How long each server takes for a token.
var pool = map[string]time.Duration{"10.0.0.1": 10 * time.Millisecond, "10.0.0.2": 30 * time.Millisecond}

func main() {
	address := flag.String("address", "127.0.0.1:50051", "host:port of the service, or unix:///path")
	requests := flag.Int("requests", 300, "requests to route")
	flag.Parse()

	// grpc-go 1.63 and later: grpc.NewClient, and grpc.WithTransportCredentials(insecure.NewCredentials()) for grpc.WithInsecure().
	connection, err := grpc.Dial(*address, append(router.DialOptions(), grpc.WithInsecure())...)
	if err != nil {
		log.Fatal(err)
	}
	defer connection.Close()
	// A long deadline, to show predictions on a busy machine too. A gateway keeps the default of 50 ms.
	options := router.Options{Model: "qwen3-32b", Deadline: time.Second}
	if err := route(router.New(connection, options), *requests); err != nil {
		log.Fatal(err)
	}
}

func route(r *router.Router, requests int) error {
	var candidates []router.Candidate
	for address := range pool {
		candidates = append(candidates, router.Candidate{Address: address})
	}
	servers, versions := map[string]int{}, map[string]int{}
	for i := 0; i < requests; i++ {
		choice, err := r.Choose(context.Background(), int32(200+i%1800), candidates)
		if err != nil {
			return err
		}
		servers[choice.Address]++
		versions[versionOf(choice)]++
		send(choice, 200+i%1800)
	}
	reported, err := r.Close()
	fmt.Printf("requests by server: %v\nby model version: %v\nreported: %+v\n", servers, versions, reported)
	return err
}

func versionOf(choice *router.Choice) string {
	if choice.Err != nil {
		return "fallback"
	}
	return choice.ModelVersion
}

// send stands for the request to the server: a gateway measures these times.
func send(choice *router.Choice, promptTokens int) {
	const outputTokens = 100
	perToken := pool[choice.Address]
	choice.FirstToken(time.Duration(promptTokens) * perToken / 50)
	choice.Finished((outputTokens-1)*perToken, outputTokens)
}
